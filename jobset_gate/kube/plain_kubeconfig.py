"""Reads kubeconfigs of one file with a certificate or a token without kubernetes_asyncio, whose import takes 0.3 s.

Everything else (exec plugins, OIDC, token files, passwords, several files, mistakes) is left to the library.
"""

from __future__ import annotations

import binascii
import os
from base64 import b64decode
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

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
class PlainContext:
    """One context. PEM texts; "" for none. `verify`: whether the server's certificate is verified."""

    name: str
    namespace: str
    server: str
    ca: str
    verify: bool
    server_name: str
    certificate: str
    key: str
    token: str


def read(places: str, context: str | None) -> PlainContext | None:
    """The context of the kubeconfig at `places`; None if that is not all it needs, or it is wrong in any way."""
    if os.pathsep in places:
        return None
    try:
        return _read(Path(places).expanduser(), context)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None  # the library reads it again, and its error is reported


def _read(path: Path, context: str | None) -> PlainContext | None:
    import yaml  # noqa: PLC0415 - a pod in the cluster reads no kubeconfig

    try:
        config = yaml.safe_load(path.read_text())
    except yaml.YAMLError:
        return None
    name = context or config["current-context"]
    chosen = _named(config["contexts"], name)["context"]
    cluster = _named(config["clusters"], chosen["cluster"])["cluster"]
    user = _named(config["users"], chosen["user"])["user"]
    if not cluster.keys() <= _CLUSTER or not user.keys() <= _USER or not cluster["server"].startswith("https:"):
        return None
    return PlainContext(
        name=_text(name),
        namespace=_text(chosen.get("namespace") or "default"),
        server=cluster["server"].rstrip("/"),
        ca=_pem(cluster, "certificate-authority", path.parent),
        verify=not _flag(cluster.get("insecure-skip-tls-verify", False)),
        server_name=_text(cluster.get("tls-server-name") or ""),
        certificate=_pem(user, "client-certificate", path.parent),
        key=_pem(user, "client-key", path.parent),
        token=_text(user.get("token") or ""),
    )


def _named(entries: list[dict[str, Any]], name: object) -> dict[str, Any]:
    """The only entry of that name. Raises ValueError if there is none, or more than one."""
    (found,) = (it for it in entries if it["name"] == name)
    return found


def _pem(entry: dict[str, Any], key: str, folder: Path) -> str:
    """Data goes before a file; a file's name is relative to the kubeconfig's folder."""
    data, file = entry.get(f"{key}-data"), entry.get(key)
    if data:
        try:
            return b64decode(_text(data), validate=True).decode()
        except binascii.Error as error:
            raise ValueError(key) from error
    return (folder / _text(file)).read_text() if file else ""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(value)
    return value
