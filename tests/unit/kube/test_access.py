"""The credentials of a pod: its service account, whose token and CA rotate."""

import asyncio
import ssl
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp import web

from jobset_gate.kube import access
from jobset_gate.kube.access import REFRESH_SECONDS, in_cluster, load_access
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import InvalidKubeConfig, Unreachable
from jobset_gate.kube.kubeconfig import Overrides
from jobset_gate.kube.resources import PODS
from tests.fakes.loopback_server import LoopbackServer
from tests.plane import certs
from tests.unit.kube.test_kubeconfig import SERVER, write


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A service account as the kubelet mounts it, with no real CA in it."""
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text("first\n")
    (folder / "namespace").write_text("mine")
    (folder / "ca.crt").write_text("")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    monkeypatch.setattr(access, "_ca_context", lambda _: ssl.create_default_context())
    return folder


async def test_in_a_pod_its_service_account_is_used_and_its_token_read_again_within_a_minute(account: Path) -> None:
    """At once where it was refused, but not time and again."""
    found = in_cluster(account)
    assert (found.server, found.namespace) == ("https://[fd00::1]:6443", "mine")
    assert found.token is not None
    assert found.token_rejected is not None
    assert await found.token() == "first"
    (account / "token").write_text("second")
    assert await found.token() == "first"
    found.token_rejected()
    assert await found.token() == "second"
    (account / "token").write_text("third")
    found.token_rejected()
    assert await found.token() == "second"
    await asyncio.sleep(5)
    assert await found.token() == "second", "nobody has refused it since"
    found.token_rejected()
    assert await found.token() == "third"
    (account / "token").write_text("fourth")
    await asyncio.sleep(61)
    assert await found.token() == "fourth"
    (account / "token").unlink()
    await asyncio.sleep(61)
    assert await found.token() == "fourth"


async def test_no_account_and_a_broken_ca_are_errors_that_say_so(
    account: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    with pytest.raises(InvalidKubeConfig, match=r"ca\.crt"):
        in_cluster(account)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(InvalidKubeConfig, match="not in a pod"):
        in_cluster(tmp_path)


async def test_in_a_pod_the_command_line_may_name_a_kubeconfig_or_another_server_token_and_user(
    account: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", account)
    assert (await load_access(write(tmp_path, {}, {}))).server == SERVER
    found = await load_access(None, Overrides(server="https://other:1", token="given", as_user="ada"))
    assert found.token is not None
    assert (found.server, await found.token(), found.token_rejected) == ("https://other:1", "given", None)
    assert found.headers == (("Impersonate-User", "ada"),)


async def nothing(_: web.Request) -> web.Response:
    return web.json_response({"metadata": {}, "items": []})


async def test_a_ca_that_comes_while_we_run_is_trusted_within_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A standby that could not connect any more would be a standby in name only."""
    before, after = certs.make(tmp_path / "before"), certs.make(tmp_path / "after")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(after.server.cert, after.server.key)
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("token")
    (account / "ca.crt").write_bytes(before.ca.read_bytes())
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    async with LoopbackServer(nothing, tls) as server, AsyncExitStack() as stack:
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", server.url.rpartition(":")[2])
        client = (await stack.enter_async_context(Client(in_cluster(account)))).without_retries()
        for ca in (before.ca.read_bytes(), b"half of it"):
            (account / "ca.crt").write_bytes(ca)
            await asyncio.sleep(REFRESH_SECONDS + 1)
            with pytest.raises(Unreachable, match="certificate verify failed"):
                await client.list(PODS)
        (account / "ca.crt").write_bytes(after.ca.read_bytes())
        await asyncio.sleep(REFRESH_SECONDS + 1)
        assert await client.list(PODS)
