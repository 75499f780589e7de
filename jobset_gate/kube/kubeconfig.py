"""Reads a context of a kubeconfig. One file with a certificate or a token is read without kubernetes_asyncio.

Its import takes 0.3 s, so it reads all others: exec plugins, OIDC, token files, passwords, several files, mistakes.
"""

from __future__ import annotations

import os
import ssl
import sys
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from jobset_gate.kube.errors import InvalidKubeConfig

T = TypeVar("T")

DEFAULT_PATH: Final = "~/.kube/config"

_CLUSTER: Final = {
    "server",
    "certificate-authority",
    "certificate-authority-data",
    "insecure-skip-tls-verify",
    "tls-server-name",
    "extensions",
}
_USER: Final = {"client-certificate", "client-certificate-data", "client-key", "client-key-data", "token", "extensions"}


@dataclass(frozen=True, slots=True)
class KubeContext:
    """A context. `ca`, `certificate` and `key` are PEM texts, "" for none; `authorization` is the header's value."""

    name: str
    namespace: str
    server: str
    ca: str
    verify: bool
    """Whether the server's certificate is verified."""
    server_name: str | None
    certificate: str
    key: str
    authorization: str | None
    proxy: str | None = None

    def new_tls(self) -> ssl.SSLContext:
        """The client's side of TLS. Raises InvalidKubeConfig."""
        try:
            with in_memory_file(self.ca.encode()) as file:  # as `cadata` it could have no comment beyond ASCII
                tls = ssl.create_default_context(cafile=file if self.ca else None)
        except ssl.SSLError as error:
            raise InvalidKubeConfig(f"the certificate authority of context {self.name}: {error}") from error
        if not self.verify:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        self.load_certificate(tls)
        return tls

    def load_certificate(self, tls: ssl.SSLContext) -> None:
        """Into such a context; nothing if there is none. Raises InvalidKubeConfig."""
        if not self.certificate:
            return
        with in_memory_file(f"{self.certificate}\n{self.key}".encode()) as file:
            try:
                tls.load_cert_chain(file)
            except (OSError, ssl.SSLError) as error:
                raise InvalidKubeConfig(f"the client certificate of context {self.name}: {error}") from error


async def read_context(path: str | None, context: str | None) -> KubeContext:
    """By name, or the current one; of $KUBECONFIG or ~/.kube/config without a path. Raises InvalidKubeConfig."""
    places = path or os.environ.get("KUBECONFIG") or DEFAULT_PATH
    return read_plain(places, context) or await read_by_library(places, context)


def read_plain(places: str, context: str | None) -> KubeContext | None:
    """Without the library; None if the kubeconfig is not that plain, or wrong in any way."""
    if os.pathsep in places:
        return None
    try:
        return _read_file(Path(places).expanduser(), context)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None  # the library reads it again, and its error is reported


async def read_by_library(places: str, context: str | None) -> KubeContext:
    """By kubernetes_asyncio. Raises InvalidKubeConfig."""
    config, configuration = _import_library()
    from yaml import YAMLError  # noqa: PLC0415

    loaded = configuration()
    if not any(Path(it).expanduser().exists() for it in places.split(os.pathsep)):  # noqa: ASYNC240 - a local file
        raise InvalidKubeConfig(f"kubeconfig {places}: there is no such file")
    try:
        loader = await config.load_kube_config(places, context, loaded, persist_config=False)
        current: Any = loader.current_context
        ca, certificate, key = (
            Path(file).read_text() if file else ""  # noqa: ASYNC240 - local files
            for file in (loaded.ssl_ca_cert, loaded.cert_file, loaded.key_file)
        )
        token = loaded.api_key.get("BearerToken")
        return KubeContext(
            name=str(current["name"]),
            namespace=current["context"].get("namespace") or "default",
            server=str(loaded.host).rstrip("/"),
            ca=ca,
            verify=loaded.verify_ssl,
            server_name=loaded.tls_server_name,
            certificate=certificate,
            key=key,
            authorization=str(token) if token else None,
            proxy=loaded.proxy,
        )
    except (
        config.ConfigException,
        YAMLError,
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        AssertionError,  # a context or a cluster of that name is missing
    ) as error:
        # The text of these two is about its own code.
        reason = "this is no kubeconfig" if isinstance(error, TypeError | AttributeError) else str(error)
        raise InvalidKubeConfig(f"kubeconfig {places}: {reason}") from error


def _import_library() -> tuple[Any, Any]:
    """Late: half a second and 55 MiB that neither `--help` nor a pod in the cluster must pay for.

    As if kubernetes-validate were not installed: the library imports it if it can, which takes two seconds more.
    """
    modules: dict[str, Any] = sys.modules
    hidden = modules.setdefault("kubernetes_validate", None) is None
    try:
        from kubernetes_asyncio import config  # noqa: PLC0415
        from kubernetes_asyncio.client import Configuration  # noqa: PLC0415
    finally:
        if hidden:
            del modules["kubernetes_validate"]
    return config, Configuration


def _read_file(path: Path, context: str | None) -> KubeContext | None:
    import yaml  # noqa: PLC0415 - a pod in the cluster reads no kubeconfig

    try:
        config = yaml.safe_load(path.read_text())
    except yaml.YAMLError:
        return None
    name = context or config["current-context"]
    chosen = _named(config["contexts"], name)["context"]
    cluster = _named(config["clusters"], chosen["cluster"])["cluster"]
    user = _named(config["users"], chosen["user"])["user"]
    has_scheme = cluster["server"].startswith(("https:", "http:"))
    if not cluster.keys() <= _CLUSTER or not user.keys() <= _USER or not has_scheme:
        return None
    token = _typed(user.get("token") or "", str)
    return KubeContext(
        name=_typed(name, str),
        namespace=_typed(chosen.get("namespace") or "default", str),
        server=cluster["server"].rstrip("/"),
        ca=_pem(cluster, "certificate-authority", path.parent),
        verify=not _typed(cluster.get("insecure-skip-tls-verify", False), bool),
        server_name=_typed(cluster.get("tls-server-name") or "", str) or None,
        certificate=_pem(user, "client-certificate", path.parent),
        key=_pem(user, "client-key", path.parent),
        authorization=f"Bearer {token}" if token else None,
    )


def _named(entries: list[dict[str, Any]], name: object) -> dict[str, Any]:
    """The only entry of that name. Raises ValueError if there is none, or more than one."""
    (found,) = (it for it in entries if it["name"] == name)
    return found


def _pem(entry: dict[str, Any], key: str, folder: Path) -> str:
    """Data goes before a file; a file's name is relative to the kubeconfig's folder."""
    data, file = entry.get(f"{key}-data"), entry.get(key)
    if data:
        return b64decode(_typed(data, str), validate=True).decode()
    return (folder / _typed(file, str)).read_text() if file else ""


def _typed(value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(value)
    return value


@contextmanager
def in_memory_file(text: bytes) -> Iterator[str]:
    """A path under which this process can read the text while the block runs; for libraries that take files only.

    On Linux it is in anonymous memory. Elsewhere, and where a kernel refuses that, it is a file of the owner's in the
    folder for temporary files.
    """
    try:
        descriptor = os.memfd_create("jobset-gate", os.MFD_CLOEXEC)
    except (AttributeError, OSError):
        with tempfile.NamedTemporaryFile(prefix="jobset-gate-") as file:
            file.write(text)
            file.flush()
            yield file.name
        return
    try:
        os.write(descriptor, text)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
