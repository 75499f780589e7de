"""Clients that hold connections and memory are disconnected, and an ordinary request is answered."""

import asyncio
import gzip
import io
import logging
from collections.abc import Callable

import pytest

from jobset_gate.runtime.connections import ConnectionLimits
from tests.fakes.admission_reviews import body, patched, response
from tests.fakes.admission_server import admission_server, client
from tests.fakes.eventually import PATIENCE
from tests.fakes.jobsets import barrier, jobset, replicated
from tests.fakes.stalled_clients import HALF_HEAD, StalledClients, head, stalled_clients
from webhook.bodies import LARGEST_BODY
from webhook.server import WebhookServer

SHORT = ConnectionLimits(request_seconds=3.0, evict_after_seconds=0.2)
PIPELINED = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + head(10) + b"{"


async def ordinary(server: WebhookServer) -> bool:
    async with client(server) as session, asyncio.timeout(PATIENCE):
        headers = {"Content-Type": "application/json"}
        async with session.post("/mutate", data=body(jobset()), headers=headers) as answer:
            return answer.status == 200 and bool(barrier(patched(jobset(), await answer.read())))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await asyncio.to_thread(holds):  # noqa: ASYNC110 - sockets of clients tell nobody
            await asyncio.sleep(0.05)


def nobody_held(held: StalledClients) -> Callable[[], bool]:
    return lambda: held.held() == 0


@pytest.mark.parametrize(
    ("said", "handshake"), [(HALF_HEAD, True), (b"", False)], ids=["half heads", "connections that never begin TLS"]
)
async def test_they_take_no_more_than_256_places_and_an_ordinary_request_is_answered(
    said: bytes, handshake: bool
) -> None:
    async with admission_server(limits=SHORT) as server:
        with stalled_clients(server.url, handshake=handshake) as held:
            await asyncio.to_thread(held.open, 320, said)
            assert await ordinary(server)
            assert await asyncio.to_thread(held.held) <= 256
            await until(nobody_held(held))


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(head(LARGEST_BODY) + b" " * (LARGEST_BODY - 1), id="a body without its last byte"),
        pytest.param(head(10) + b"{", id="a small body without its last byte"),
        pytest.param(PIPELINED, id="behind a request that was answered"),
        pytest.param(head(10, "/nothing"), id="to a path that is not there"),
    ],
)
async def test_40_requests_that_never_end_are_closed_and_an_ordinary_one_is_answered(said: bytes) -> None:
    async with admission_server(limits=SHORT) as server:
        with stalled_clients(server.url) as held:
            opening = asyncio.create_task(asyncio.to_thread(held.open, 40, said))
            assert await ordinary(server)
            await opening
            assert await ordinary(server)
            await until(nobody_held(held))


async def test_the_largest_review_is_answered_while_others_hold_the_memory_for_large_ones() -> None:
    """Of two objects of 1.5 MiB, which is all that etcd takes."""
    large = jobset(notes={"padding": "x" * (3 * 512 * 1024)})
    raw = body(large, large)
    assert 3 * 1024 * 1024 < len(raw) < LARGEST_BODY
    async with admission_server(limits=ConnectionLimits(request_seconds=PATIENCE)) as server:
        with stalled_clients(server.url) as held:
            await asyncio.to_thread(held.open, 8, head(LARGEST_BODY) + b" " * 100_000)
            async with client(server) as session, asyncio.timeout(PATIENCE / 2):
                headers = {"Content-Type": "application/json"}
                async with session.post("/mutate", data=io.BytesIO(raw), headers=headers) as answer:
                    assert answer.status == 200
                    assert response(await answer.read())["allowed"] is True


async def test_answers_that_nobody_reads_are_not_kept() -> None:
    """More of them than the kernel keeps."""
    asked = body(jobset(*(replicated(f"job-{index}") for index in range(300))))
    async with admission_server(limits=SHORT) as server:
        with stalled_clients(server.url) as held:
            await asyncio.to_thread(held.open, 6, 8 * (head(len(asked)) + asked))
            assert await ordinary(server)
            await until(lambda: len(server.connections) == 0)


async def test_an_idle_connection_makes_room_and_gets_a_503() -> None:
    async with admission_server(limits=ConnectionLimits(connections=2)) as server:
        with stalled_clients(server.url) as held:
            await asyncio.to_thread(held.open, 2, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            first = held.sockets[0]
            said = await asyncio.to_thread(first.recv, 65536)
            assert said.startswith(b"HTTP/1.1 200 ")
            assert await ordinary(server)
            message = await asyncio.to_thread(first.recv, 65536)
            assert message.startswith(b"HTTP/1.1 503 ")
            assert b"\r\nRetry-After: 1\r\n" in message


async def test_a_client_that_takes_its_time_is_left_alone_while_there_are_places() -> None:
    async with admission_server(limits=ConnectionLimits(connections=20, evict_after_seconds=0.05)) as server:
        with stalled_clients(server.url) as held:
            await asyncio.to_thread(held.open, 2, HALF_HEAD)
            for _ in range(5):
                assert await ordinary(server)
            assert await asyncio.to_thread(held.held) == 2


async def test_200_bodies_that_break_off_leave_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with admission_server() as server:
            with stalled_clients(server.url) as held:
                await asyncio.to_thread(held.open, 100, head(1000) + b"{")
                await asyncio.to_thread(held.open, 100, head(200_000) + b"{" * 100_000)
            await until(lambda: len(server.connections) == 0)
            assert await ordinary(server)
    assert [it for it in caplog.records if it.levelno >= logging.WARNING or it.exc_info] == []


async def test_a_chunked_body_that_is_none_is_a_bad_request(caplog: pytest.LogCaptureFixture) -> None:
    headers = b"Host: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    said = b"POST /mutate HTTP/1.1\r\n" + headers + b"\r\nzz\r\n"
    async with admission_server() as server:
        with stalled_clients(server.url) as held:
            await asyncio.to_thread(held.open, 1, said)
            assert b" 400 Bad Request" in await asyncio.to_thread(held.sockets[0].recv, 65536)
        assert await ordinary(server)
    assert [it for it in caplog.records if it.exc_info] == []


async def test_a_compressed_body_is_refused_before_it_is_made_larger() -> None:
    async with admission_server() as server, client(server) as session:
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        bomb = gzip.compress(b" " * 100_000_000)
        async with session.post("/mutate", data=bomb, headers=headers) as answer:
            assert answer.status == 415
            assert "Content-Encoding" in await answer.text()


async def test_a_body_longer_than_it_says_is_cut_at_the_bound() -> None:
    """Chunked: nobody says how long it will be."""
    piece = b" " * 65536

    async with admission_server() as server, client(server) as session:

        async def endless() -> object:
            while True:
                yield piece

        headers = {"Content-Type": "application/json"}
        async with session.post("/mutate", data=endless(), headers=headers) as answer:
            assert answer.status == 413
