"""Kubeconfigs: plain ones are read as kubernetes_asyncio reads them, and all others are left to it."""

import asyncio
import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobset_gate.kube import kubeconfig
from jobset_gate.kube.access import Access, from_kubeconfig, proxy_for
from jobset_gate.kube.errors import InvalidKubeConfig
from jobset_gate.kube.kubeconfig import Overrides, choose_context
from tests.fakes.present import present
from tests.plane import certs

Json = dict[str, Any]
SERVER = "https://127.0.0.1:6443"
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
ANSWER = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"minted"}}'


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> certs.Certificates:
    return certs.make(tmp_path_factory.mktemp("pki"))


def write(folder: Path, user: Json, cluster: Json, **more: Any) -> str:
    """Two contexts: `here`, which is current, and `there`, whose server is reached by plain HTTP."""
    plain_http = {"server": "http://127.0.0.1:2", "tls-server-name": "kube", "proxy-url": "http://p:3"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
            {"name": "there", "context": {"cluster": "d", "user": "v"}},
        ],
        "clusters": [
            {"name": "c", "cluster": {"server": f"{SERVER}/", **cluster}},
            {"name": "d", "cluster": plain_http},
        ],
        "users": [{"name": "u", "user": user}, {"name": "v", "user": {"token": "theirs"}}],
        **more,
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(config))
    return str(path)


async def token_of(access: Access) -> str | None:
    return await present(access.token)()


def encoded(path: Path, before: str = "") -> str:
    return base64.b64encode(before.encode() + path.read_bytes()).decode()


CASES: dict[str, Callable[[certs.Certificates], tuple[Json, Json]]] = {
    "a token": lambda _: ({"token": "t0ken"}, {}),
    "files": lambda it: (
        {"client-certificate": str(it.admin.cert), "client-key": str(it.admin.key)},
        {"certificate-authority": str(it.ca)},
    ),
    "data": lambda it: (
        {"client-certificate-data": encoded(it.admin.cert), "client-key-data": encoded(it.admin.key)},
        {"certificate-authority-data": encoded(it.ca), "tls-server-name": "kubernetes"},
    ),
    "both, token first": lambda it: (
        {"client-certificate": str(it.admin.cert), "client-key": str(it.admin.key), "token": "t0ken"},
        {"certificate-authority": os.path.relpath(it.ca, it.ca.parent)},
    ),
    "a CA with a comment": lambda it: (
        {"token": "t0ken"},
        {"certificate-authority-data": encoded(it.ca, "# größer\n")},
    ),
    "unverified": lambda _: ({"token": "t0ken"}, {"insecure-skip-tls-verify": True}),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_plain_one_is_read_as_the_library_reads_it(
    case: str, identity: certs.Certificates, tmp_path: Path
) -> None:
    (tmp_path / "ca.crt").write_bytes(identity.ca.read_bytes())  # files are relative to the kubeconfig's folder
    path = write(tmp_path, *CASES[case](identity))
    chosen = choose_context(path, Overrides())
    found = present(kubeconfig.read_plain(chosen))
    assert found == await kubeconfig.read_by_library(chosen)
    found.new_tls()


@pytest.mark.parametrize(
    ("user", "cluster", "more"),
    [
        ({"client-certificate": "absent"}, {}, {}),
        ({"client-certificate-data": "%"}, {}, {}),
        ({}, {"insecure-skip-tls-verify": "yes"}, {}),
        ({}, {}, {"contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": 7}}]}),
    ],
)
def test_what_is_not_plain_is_left_to_the_library(user: Json, cluster: Json, more: Json, tmp_path: Path) -> None:
    path = write(tmp_path, user, cluster, **more)
    assert kubeconfig.read_plain(choose_context(path, Overrides())) is None


async def test_the_current_context_is_taken_unless_another_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, {}, {})
    here, there = await from_kubeconfig(path), await from_kubeconfig(path, Overrides(context="there"))
    assert (here.server, here.namespace, here.token) == (SERVER, "team", None)
    assert (there.server, there.namespace, there.ssl) == ("http://127.0.0.1:2", "default", None)
    assert (there.server_name, there.proxy) == ("kube", "http://p:3")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no such file"),
        ("", "this is no kubeconfig"),
        ("{", "while parsing"),
        ("current-context: nowhere\ncontexts: []\nclusters: []\n", "there is no context nowhere; there are none"),
        ("contexts: [{name: b, context: {}}, {name: a, context: {}}]", "it has no current context; there are a, b"),
        ("{current-context: a, contexts: [{name: b, context: {}}]}", "there is no context a; there are b"),
        ("users: [{name: u, user: {}}, {name: u, user: {}}]", "two users are called u"),
        ("current-context: a\ncontexts: [{name: a, context: {user: x}}]", "there is no user x; there are none"),
    ],
)
async def test_one_that_is_no_good_is_an_error_that_names_it(tmp_path: Path, content: str | None, reason: str) -> None:
    path = tmp_path / "broken"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidKubeConfig, match=f"broken: .*{reason}"):
        await from_kubeconfig(str(path))


@pytest.mark.parametrize("data", ["client-certificate-data", "certificate-authority-data"])
async def test_a_certificate_that_is_none_is_an_error_that_names_the_context(data: str, tmp_path: Path) -> None:
    wrong = {data: base64.b64encode(b"no certificate").decode()}
    user, cluster = (wrong, {}) if data.startswith("client") else ({}, wrong)
    with pytest.raises(InvalidKubeConfig, match="of context here"):
        await from_kubeconfig(write(tmp_path, user, cluster))


async def test_a_new_token_is_read_within_a_minute_or_at_once_when_the_old_one_is_rejected(tmp_path: Path) -> None:
    """That of the context that was read first, though another is the current one by now."""
    found = await from_kubeconfig(write(tmp_path, {"token": "one"}, {}))
    write(tmp_path, {"token": "two"}, {})
    assert await token_of(found) == "Bearer one"
    present(found.token_rejected)()
    assert await token_of(found) == "Bearer two"
    (tmp_path / "token").write_text("three")
    write(tmp_path, {"tokenFile": str(tmp_path / "token")}, {}, **{"current-context": "there"})
    await asyncio.sleep(61)
    assert await token_of(found) == "Bearer three"
    (tmp_path / "config").unlink()
    await asyncio.sleep(61)
    assert await token_of(found) == "Bearer three"


async def test_passwords_and_exec_plugins_give_their_authorization(tmp_path: Path, real_time: None) -> None:
    found = await from_kubeconfig(write(tmp_path, {"username": "u", "password": "p"}, {}))
    assert await token_of(found) == "Basic dTpw"
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\necho '{ANSWER}'\n")
    plugin.chmod(0o700)
    found = await from_kubeconfig(write(tmp_path, {"exec": {"command": str(plugin), **EXEC}}, {}))
    assert await token_of(found) == "Bearer minted"


# --- What the command line says instead, and several files


@pytest.mark.parametrize(
    ("overrides", "server", "token", "server_name"),
    [
        (Overrides(), SERVER, "Bearer ours", "kube"),
        (Overrides(user="v"), SERVER, "Bearer theirs", "kube"),
        (Overrides(cluster="d"), "http://127.0.0.1:2", "Bearer ours", "kube"),
        (Overrides(token="given"), SERVER, "Bearer given", "kube"),
        (Overrides(context="there", token="given"), "http://127.0.0.1:2", "Bearer given", "kube"),
        (Overrides(server="http://127.0.0.1:9/"), "http://127.0.0.1:9", "Bearer ours", None),
    ],
    ids=["nothing", "the user", "the cluster", "the token", "context and token", "the server, not under its old name"],
)
async def test_what_the_command_line_says_counts(
    tmp_path: Path, overrides: Overrides, server: str, token: str, server_name: str | None
) -> None:
    path = write(tmp_path, {"token": "ours"}, {"tls-server-name": "kube"})
    found = await from_kubeconfig(path, overrides)
    assert (found.server, await token_of(found), found.server_name) == (server, token, server_name)


async def test_a_given_token_keeps_plugins_and_passwords_from_being_asked(tmp_path: Path) -> None:
    for user in ({"exec": {"command": "/nowhere", **EXEC}}, {"username": "u", "password": "p"}):
        found = await from_kubeconfig(write(tmp_path, user, {}), Overrides(token="given"))
        assert await token_of(found) == "Bearer given"


async def test_a_server_alone_needs_no_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    found = await from_kubeconfig(None, Overrides(server="http://127.0.0.1:1"))
    assert (found.server, found.token, found.namespace) == ("http://127.0.0.1:1", None, "default")


async def test_which_user_requests_impersonate(tmp_path: Path) -> None:
    stored = {"as": "ada", "as-groups": ["a", "b"], "as-uid": "7", "as-user-extra": {"Ex.am/ple": ["x", "y"]}}
    found = await from_kubeconfig(write(tmp_path, {"token": "t", **stored}, {}))
    wanted = [("User", "ada"), ("Uid", "7"), ("Group", "a"), ("Group", "b")]
    wanted += [("Extra-ex.am%2Fple", "x"), ("Extra-ex.am%2Fple", "y")]
    assert [*found.headers] == [(f"Impersonate-{key}", value) for key, value in wanted]
    found = await from_kubeconfig(write(tmp_path, {"token": "t"}, {}), Overrides(as_user="bob", as_groups=("c",)))
    assert [*found.headers] == [("Impersonate-User", "bob"), ("Impersonate-Group", "c")]
    with pytest.raises(InvalidKubeConfig, match="without a user"):
        await from_kubeconfig(write(tmp_path, {"as-groups": ["a"]}, {}))


async def test_of_several_files_the_first_that_names_something_counts_and_paths_are_relative_to_each(
    tmp_path: Path, identity: certs.Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more/ca.crt").write_bytes(identity.ca.read_bytes())
    first = tmp_path / "first"
    first.write_text(yaml.safe_dump({"users": [{"name": "u", "user": {"token": "first"}}]}))
    second = write(tmp_path / "more", {"token": "second"}, {"certificate-authority": "ca.crt"})
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(first), str(tmp_path / "none"), second]))
    found = await from_kubeconfig()
    assert (await token_of(found), found.server, found.other_contexts) == ("Bearer first", SERVER, ("there",))
    assert len(present(found.ssl).get_ca_certs()) == 1


# --- proxies

P = "http://proxy:3128"
CLUSTER = "https://api.prod.example.com:6443"


@pytest.mark.parametrize(
    ("server", "environment", "expected"),
    [
        (CLUSTER, {}, None),
        (CLUSTER, {"HTTPS_PROXY": P}, P),
        (CLUSTER, {"HTTP_PROXY": P}, None),
        ("http://api.example.com", {"HTTP_PROXY": P}, P),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": P}, None),
    ],
)
def test_the_variable_of_the_servers_scheme_counts_and_loopback_needs_no_proxy(
    server: str, environment: dict[str, str], expected: str | None
) -> None:
    assert proxy_for(server, environment) == expected


@pytest.mark.parametrize(
    ("no_proxy", "server", "direct"),
    [
        ("*", CLUSTER, True),
        ("example.com", CLUSTER, True),
        (".example.com", CLUSTER, True),
        ("API.prod.example.com", CLUSTER, True),
        ("ample.com", CLUSTER, False),
        ("example.com:6443", CLUSTER, True),
        ("example.com:443", CLUSTER, False),
        ("10.0.0.0/8", "https://10.96.0.1", True),
        ("10.0.0.0/8", "https://11.0.0.1", False),
        ("fd00::/8", "https://[fd00::1]:6443", True),
        ("[fd00::1]:6443", "https://[fd00::1]:6443", True),
        ("[fd00::1]:443", "https://[fd00::1]:6443", False),
    ],
)
def test_what_no_proxy_names_is_reached_directly(no_proxy: str, server: str, direct: bool) -> None:
    found = proxy_for(server, {"HTTPS_PROXY": P, "NO_PROXY": no_proxy})
    assert found == (None if direct else P)


async def test_a_proxy_that_the_kubeconfig_names_counts_before_the_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", P)
    monkeypatch.setenv("NO_PROXY", "*")
    path = write(tmp_path, {}, {"server": "http://api.example.com"})
    assert (await from_kubeconfig(path, Overrides(context="there"))).proxy == "http://p:3"
    assert (await from_kubeconfig(path)).proxy is None
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.delenv("no_proxy", raising=False)
    assert (await from_kubeconfig(path)).proxy == P


def test_a_proxy_that_does_not_speak_http_is_an_error_that_names_it() -> None:
    with pytest.raises(InvalidKubeConfig, match="socks5://proxy:1080"):
        proxy_for(CLUSTER, {}, "socks5://proxy:1080")
