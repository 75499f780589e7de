"""Where the server and the credentials are found."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from jobset_gate.kube import access
from jobset_gate.kube.access import REFRESH_SECONDS, from_kubeconfig, in_cluster, load_access
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import InvalidKubeConfig, Unreachable
from jobset_gate.kube.resources import PODS
from tests.plane import certs

# ruff: noqa: ASYNC240 - small files of the test's own.


def kubeconfig(folder: Path, *, server: str = "http://127.0.0.1:1/", user: dict[str, Any] | None = None) -> str:
    """Two contexts, "one" (current) and "two", which has a namespace."""
    path = folder / "config"
    users = [{"name": "u", "user": user or {}}]
    contexts = [
        {"name": "one", "context": {"cluster": "c", "user": "u"}},
        {"name": "two", "context": {"cluster": "d", "user": "u", "namespace": "mine"}},
    ]
    clusters = [
        {"name": "c", "cluster": {"server": server}},
        {
            "name": "d",
            "cluster": {"server": "http://127.0.0.1:2", "tls-server-name": "kube", "proxy-url": "http://p:3"},
        },
    ]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "contexts": contexts,
        "clusters": clusters,
        "users": users,
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


async def test_the_current_context_is_taken_unless_another_is_named(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path)
    one = await from_kubeconfig(path)
    assert (one.server, one.namespace, one.ssl, one.token) == ("http://127.0.0.1:1", "default", None, None)
    two = await from_kubeconfig(path, "two")
    assert (two.server, two.namespace) == ("http://127.0.0.1:2", "mine")
    assert (two.server_name, two.proxy) == ("kube", "http://p:3")


async def test_the_environments_proxy_is_used_for_a_kubeconfig_that_names_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    path = kubeconfig(tmp_path, server="http://api.example.com")
    assert (await from_kubeconfig(path)).proxy == "http://proxy:3128"
    assert (await from_kubeconfig(path, "two")).proxy == "http://p:3"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no such file"),
        ("", "this is no kubeconfig"),
        ("[]", "this is no kubeconfig"),
        ("{", "while parsing"),
        ("current-context: x\ncontexts: []\nclusters: []\n", "Expected object with name x"),
    ],
)
async def test_a_kubeconfig_that_is_no_good_is_an_error_that_names_it(
    tmp_path: Path, content: str | None, reason: str
) -> None:
    path = tmp_path / "broken"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidKubeConfig, match=f"broken: .*{reason}"):
        await from_kubeconfig(str(path))


async def test_a_context_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidKubeConfig, match="nowhere"):
        await from_kubeconfig(kubeconfig(tmp_path), "nowhere")


async def test_a_token_file_that_rotates_is_read_again_within_a_minute(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    found = await from_kubeconfig(kubeconfig(tmp_path, user={"tokenFile": str(tmp_path / "token")}))
    assert found.token is not None
    assert await found.token() == "Bearer first"
    (tmp_path / "token").write_text("second")
    assert await found.token() == "Bearer first"
    await asyncio.sleep(61)
    assert await found.token() == "Bearer second"


async def test_a_kubeconfig_that_vanishes_later_leaves_the_token_that_was_known(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, user={"token": "fixed"})
    found = await from_kubeconfig(path)
    Path(path).unlink()
    await asyncio.sleep(61)
    assert found.token is not None
    assert await found.token() == "Bearer fixed"


async def test_another_current_context_later_does_not_send_its_token_to_our_server(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, user={"token": "ours"})
    found = await from_kubeconfig(path)
    config = yaml.safe_load(Path(path).read_text())
    config["current-context"] = "two"
    config["users"].append({"name": "other", "user": {"token": "theirs"}})
    config["contexts"][1]["context"]["user"] = "other"
    Path(path).write_text(yaml.safe_dump(config))
    await asyncio.sleep(61)
    assert found.token is not None
    assert await found.token() == "Bearer ours"


async def test_user_and_password_are_basic_authentication(tmp_path: Path) -> None:
    found = await from_kubeconfig(kubeconfig(tmp_path, user={"username": "u", "password": "p"}))
    assert found.token is not None
    assert await found.token() == "Basic dTpw"


async def test_an_exec_plugins_token_is_used(tmp_path: Path, real_time: None) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(
        '#!/bin/sh\necho \'{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
        '"status":{"token":"minted"}}\'\n'
    )
    plugin.chmod(0o700)
    user = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    }
    found = await from_kubeconfig(kubeconfig(tmp_path, user=user))
    assert found.token is not None
    assert found.token_rejected is not None
    assert await found.token() == "Bearer minted"


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


async def test_in_a_pod_its_service_account_is_used_and_its_token_read_again(account: Path) -> None:
    found = in_cluster(account)
    assert (found.server, found.namespace) == ("https://[fd00::1]:6443", "mine")
    assert found.token is not None
    assert await found.token() == "first"
    (account / "token").write_text("second")
    await asyncio.sleep(61)
    assert await found.token() == "second"
    (account / "token").unlink()
    await asyncio.sleep(61)
    assert await found.token() == "second"


async def test_a_token_that_was_refused_is_read_again_at_once_but_not_time_and_again(account: Path) -> None:
    found = in_cluster(account)
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


async def test_outside_of_a_pod_there_is_no_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(InvalidKubeConfig, match="not in a pod"):
        in_cluster(tmp_path)


async def test_a_broken_ca_is_an_error_that_names_the_file(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    with pytest.raises(InvalidKubeConfig, match=r"ca\.crt"):
        in_cluster(account)


async def test_a_named_kubeconfig_comes_before_the_pods_account(
    account: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", account)
    assert (await load_access(kubeconfig(tmp_path))).server == "http://127.0.0.1:1"
    assert (await load_access(kubeconfig(tmp_path), "two")).server == "http://127.0.0.1:2"


def test_reading_a_kubeconfig_does_not_import_what_checks_manifests(tmp_path: Path) -> None:
    """kubernetes_asyncio takes kubernetes-validate where it is installed: two seconds for every command."""
    code = "import asyncio, sys\nfrom jobset_gate.kube import access\nasyncio.run(access.load_access(sys.argv[1]))\n"
    code += (
        "assert 'kubernetes_asyncio' in sys.modules\nprint({'kubernetes_validate', 'jsonschema'} & set(sys.modules))"
    )
    code += "\nimport kubernetes_validate"
    ran = subprocess.run(  # noqa: S603 - Python itself
        [sys.executable, "-c", code, kubeconfig(tmp_path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "set()\n"


# --- A new CA


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
