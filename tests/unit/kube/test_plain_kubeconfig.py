"""Plain kubeconfigs: read as kubernetes_asyncio reads them, and left to it as soon as anything is not plain."""

import base64
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobset_gate.kube import access, plain_kubeconfig
from jobset_gate.kube.access import from_kubeconfig
from jobset_gate.kube.errors import InvalidKubeConfig
from tests.plane import certs

# ruff: noqa: ASYNC240 - small files of the test's own.

Json = dict[str, Any]
SERVER = "https://127.0.0.1:6443"


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> certs.Certificates:
    return certs.make(tmp_path_factory.mktemp("pki"))


def write(folder: Path, user: Json, cluster: Json, **more: Any) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"{SERVER}/", **cluster}}],
        "users": [{"name": "u", "user": user}],
        **more,
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(config))
    return str(path)


def encoded(path: str | Path) -> str:
    return base64.b64encode(Path(path).read_bytes()).decode()


CASES: dict[str, Callable[[certs.Certificates], tuple[Json, Json]]] = {
    "a token": lambda _: ({"token": "t0ken"}, {}),
    "nothing": lambda _: ({}, {}),
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
        {"certificate-authority": str(it.ca)},
    ),
    "unverified": lambda _: ({"token": "t0ken"}, {"insecure-skip-tls-verify": True}),
}


@pytest.mark.parametrize("case", CASES)
async def test_it_is_read_as_the_library_reads_it(case: str, identity: certs.Certificates, tmp_path: Path) -> None:
    path = write(tmp_path, *CASES[case](identity))
    ours = plain_kubeconfig.read(path, None)
    loaded, name, namespace = await access._load(path, None)
    assert ours is not None
    assert (ours.name, ours.namespace, ours.server) == (name, namespace, str(loaded.host).rstrip("/"))
    assert (ours.verify, ours.server_name or None) == (loaded.verify_ssl, loaded.tls_server_name)
    assert access._from_plain(ours).authorization == access._from_library(loaded, name, namespace).authorization
    for text, file in (
        (ours.ca, loaded.ssl_ca_cert),
        (ours.certificate, loaded.cert_file),
        (ours.key, loaded.key_file),
    ):
        assert text == (Path(file).read_text() if file else "")


async def test_names_of_files_are_relative_to_the_kubeconfig(identity: certs.Certificates, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(Path(identity.ca).read_bytes())
    found = plain_kubeconfig.read(write(tmp_path, {}, {"certificate-authority": "ca.crt"}), None)
    assert found is not None
    assert found.ca == Path(identity.ca).read_text()


@pytest.mark.parametrize(
    ("user", "cluster", "more"),
    [
        ({"exec": {"command": "x"}}, {}, {}),
        ({"auth-provider": {"name": "oidc"}}, {}, {}),
        ({"tokenFile": "x"}, {}, {}),
        ({"username": "u", "password": "p"}, {}, {}),
        ({"as": "another-user"}, {}, {}),
        ({"token": 7}, {}, {}),
        ({"client-certificate": "absent"}, {}, {}),
        ({"client-certificate-data": "%"}, {}, {}),
        ({}, {"server": "http://127.0.0.1:1"}, {}),
        ({}, {"proxy-url": "http://p:1"}, {}),
        ({}, {"insecure-skip-tls-verify": "yes"}, {}),
        ({}, {}, {"users": []}),
        ({}, {}, {"users": [{"name": "u", "user": {}}, {"name": "u", "user": {}}]}),
        ({}, {}, {"contexts": None}),
        ({}, {}, {"current-context": "there"}),
    ],
)
def test_what_is_not_plain_is_left_to_the_library(user: Json, cluster: Json, more: Json, tmp_path: Path) -> None:
    assert plain_kubeconfig.read(write(tmp_path, user, cluster, **more), None) is None


def test_several_files_and_texts_that_are_no_kubeconfig_are_left_to_the_library(tmp_path: Path) -> None:
    path = write(tmp_path, {}, {})
    assert plain_kubeconfig.read(f"{path}{os.pathsep}{path}", None) is None
    for text in ("", "[]", "{", "a: b"):
        Path(path).write_text(text)
        assert plain_kubeconfig.read(path, None) is None
    assert plain_kubeconfig.read(str(tmp_path / "absent"), None) is None


async def test_a_new_token_is_read_within_a_minute_also_where_it_comes_from_a_plugin_now(tmp_path: Path) -> None:
    path = write(tmp_path, {"token": "one"}, {})
    found = await from_kubeconfig(path)
    assert found.token is not None
    assert found.token_rejected is not None
    assert await found.token() == "Bearer one"
    write(tmp_path, {"token": "two"}, {})
    found.token_rejected()
    assert await found.token() == "Bearer two"
    (tmp_path / "token").write_text("three")
    write(tmp_path, {"tokenFile": str(tmp_path / "token")}, {})
    found = await from_kubeconfig(path)
    assert found.token is not None
    assert await found.token() == "Bearer three"


@pytest.mark.parametrize("data", ["client-certificate-data", "certificate-authority-data"])
async def test_a_certificate_that_is_none_is_an_error_that_names_the_context(data: str, tmp_path: Path) -> None:
    wrong = {data: base64.b64encode(b"no certificate").decode()}
    user, cluster = (wrong, {}) if data.startswith("client") else ({}, wrong)
    with pytest.raises(InvalidKubeConfig, match="of context here"):
        await from_kubeconfig(write(tmp_path, user, cluster))


def test_the_library_is_not_imported_for_it(tmp_path: Path) -> None:
    """Its import takes most of the time of a command."""
    code = "import asyncio, sys\nfrom jobset_gate.kube import access\nasyncio.run(access.load_access(sys.argv[1]))\n"
    ran = subprocess.run(  # noqa: S603 - Python itself
        [
            sys.executable,
            "-c",
            f"{code}print('kubernetes_asyncio' in sys.modules)",
            write(tmp_path, {"token": "x"}, {}),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "False\n"
