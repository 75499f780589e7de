"""Where no cluster is reached: which kubeconfig, context and server, how far it came, and what to do next."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from jobset_gate.cli.cluster import ClusterOptions, parse_timeout
from jobset_gate.cli.options import WEEK
from tests.fakes.cli_runner import RunCli
from tests.plane import certs


def config(folder: Path, server: str) -> str:
    """A kubeconfig with the contexts `here` and `there`."""
    context = {"cluster": "c", "user": "u"}
    path = folder / "config"
    whole = {
        "current-context": "here",
        "contexts": [{"name": name, "context": context} for name in ("here", "there")],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t0ken"}}],
    }
    path.write_text(yaml.safe_dump(whole))
    return str(path)


@asynccontextmanager
async def answering(answer: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server on loopback that answers each request with these bytes, and the port of it."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


UNAUTHORIZED = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


async def hints(run: RunCli, *arguments: str) -> tuple[str, list[str]]:
    """The error, and the lines below it."""
    ran = await asyncio.to_thread(run, "get", "gangs", *arguments)
    first, *more = ran.err.splitlines()
    assert (ran.code, ran.out) == (1, "")
    return first, [it.strip() for it in more]


async def test_a_refused_connection_names_kubeconfig_context_server_and_what_to_do(run: RunCli, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    path = config(tmp_path, f"https://127.0.0.1:{port}")
    first, more = await hints(run, "--kubeconfig", path)
    assert first == f"error: no API server is reached: cannot connect to 127.0.0.1:{port}: Connection refused"
    assert more == [
        f"kubeconfig {path}, context here; server https://127.0.0.1:{port}",
        "tried: DNS worked; TCP failed",
        "next: see whether the cluster runs, and whether a firewall, VPN or proxy is in the way",
        "other contexts: there",
    ]


async def test_a_name_that_does_not_resolve(run: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*_: object, **__: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", unknown)
    first, more = await hints(run, "--kubeconfig", config(tmp_path, "https://nowhere.test:6443"))
    assert first.startswith("error: no API server is reached: cannot connect to nowhere.test:6443: Name or service not")
    assert more[1] == "tried: DNS failed"
    assert more[2] == "next: see whether the server's name is right, and whether it needs a VPN"


async def test_a_server_that_is_not_trusted(run: RunCli, tmp_path: Path) -> None:
    pki = certs.make(tmp_path / "pki")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pki.server.cert, pki.server.key)
    async with answering(UNAUTHORIZED, tls) as port:
        first, more = await hints(run, "--kubeconfig", config(tmp_path, f"https://127.0.0.1:{port}"))
    assert "cannot trust 127.0.0.1" in first
    assert more[1] == "tried: DNS and TCP worked; TLS failed"
    assert "certificate authority" in more[2]


async def test_credentials_that_are_nobodys_and_a_server_that_speaks_no_http(run: RunCli, tmp_path: Path) -> None:
    async with answering(UNAUTHORIZED) as port:
        path = config(tmp_path, f"http://127.0.0.1:{port}")
        first, more = await hints(run, "--kubeconfig", path, "--context", "there")
        assert first.startswith("error: the API server takes these credentials for nobody's: 401")
        assert more[0].startswith(f"kubeconfig {path}, context there; server ")
        assert more[1:] == [
            "tried: DNS and TCP and HTTP worked; LOGIN failed",
            "next: log in again, or name another --user or --token; `kubectl auth whoami` asks the same",
            "other contexts: here",
        ]
    async with answering(b"SSH-2.0-x\r\n") as port:
        _, more = await hints(run, "--server", f"http://127.0.0.1:{port}", "--kubeconfig", path)
        assert more[1:3] == [
            "tried: DNS and TCP worked; HTTP failed",
            "next: try again; `kubectl get --raw /readyz` asks the same server",
        ]


async def test_a_request_waits_as_long_as_the_command_line_says(run: RunCli, tmp_path: Path) -> None:
    found = await ClusterOptions(server="http://127.0.0.1:1", request_timeout=0.05).load_access()
    assert found.timeout == 0.05
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = ("--kubeconfig", config(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}"))
        _, more = await hints(run, *where, "--request-timeout", "50ms")
    assert more[1] == "next: see whether a firewall or VPN is in the way; --request-timeout waits longer"


@pytest.mark.parametrize(("text", "seconds"), [("5", 5), ("1500ms", 1.5), ("2m", 120), ("0", WEEK), ("0s", WEEK)])
def test_a_request_timeout_is_given_as_kubectl_takes_it(text: str, seconds: float) -> None:
    assert parse_timeout(text) == seconds


@pytest.mark.parametrize("option", ["--as-group", "--as-uid"])
def test_nobody_is_impersonated_by_group_or_uid_alone(run: RunCli, option: str) -> None:
    ran = run("get", "gangs", option, "x", "--server", "http://127.0.0.1:1")
    assert (ran.code, "--as-group and --as-uid need --as" in ran.err) == (2, True)
