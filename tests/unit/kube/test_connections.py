"""Connections over TLS whose response is left before its end."""

import asyncio
import gc
import socket
import ssl
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest

from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ResponseTooLarge
from jobset_gate.kube.resources import PODS
from webhook.certs.serving import self_signed

HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nhalf"


@contextmanager
def silent_server(response: bytes) -> Iterator[Access]:
    """Sends this to each client, and never answers that a connection is to be closed."""
    pair, listening = self_signed(), socket.create_server(("127.0.0.1", 0))
    held: list[ssl.SSLSocket] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                held.append(pair.serving.context.wrap_socket(listening.accept()[0], server_side=True))
                held[-1].recv(65536)
                held[-1].sendall(response)

    thread = Thread(target=serve)
    thread.start()
    trust = ssl.create_default_context(cadata=pair.ca.decode())
    try:
        yield Access(f"https://127.0.0.1:{listening.getsockname()[1]}", ssl=trust)
    finally:
        listening.shutdown(socket.SHUT_RDWR)  # or accept() would go on
        thread.join()
        for one in (*held, listening):
            one.close()


async def leave_a_watch(client: Client) -> None:
    async with client.watch(PODS, "ns", resource_version="", timeout_seconds=50):
        pass


async def refuse_the_rest(client: Client) -> None:
    with pytest.raises(ResponseTooLarge):
        await client.list(PODS, "ns", max_bytes=1)


async def give_up(client: Client) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await client.get(PODS, "x", "ns")


@pytest.mark.parametrize(
    ("leave", "response"), [(leave_a_watch, HALF), (refuse_the_rest, HALF), (give_up, HALF), (give_up, b"")]
)
def test_a_response_that_is_left_has_no_open_connection_after_its_client(
    leave: Callable[[Client], Awaitable[None]], response: bytes
) -> None:
    """Over TLS, closing waits for the server's answer; the loop of a command ends before it."""

    async def run(access: Access) -> None:
        async with Client(access) as client:
            await leave(client)

    gc.collect()
    with silent_server(response) as access, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        asyncio.run(run(access))
        gc.collect()
    assert [str(it.message) for it in caught] == []
