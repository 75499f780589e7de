"""A cluster's CA is replaced while we run."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from aiohttp import web

from jobset_gate.kube.access import REFRESH_SECONDS, in_cluster
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Unreachable
from jobset_gate.kube.resources import PODS
from tests.plane import certs


async def serve(identity: certs.Certificates) -> tuple[web.AppRunner, str]:
    """An API server with nothing in it, and its port."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(identity.server.cert, identity.server.key)
    app = web.Application()
    app.router.add_get("/{path:.*}", nothing)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    return runner, str(runner.addresses[0][1])


async def nothing(_: web.Request) -> web.Response:
    return web.json_response({"metadata": {}, "items": []})


async def test_a_ca_that_comes_while_we_run_is_trusted_within_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A standby that could not connect any more would be a standby in name only."""
    before, after = certs.make(tmp_path / "before"), certs.make(tmp_path / "after")
    runner, port = await serve(after)
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("token")
    (account / "ca.crt").write_bytes(before.ca.read_bytes())
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    async with Client(in_cluster(account)) as client:
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await client.without_retries().list(PODS)
        (account / "ca.crt").write_text("half of it")
        await asyncio.sleep(REFRESH_SECONDS + 1)
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await client.without_retries().list(PODS)
        (account / "ca.crt").write_bytes(after.ca.read_bytes())
        await asyncio.sleep(REFRESH_SECONDS + 1)
        assert await client.without_retries().list(PODS)
    await runner.cleanup()
