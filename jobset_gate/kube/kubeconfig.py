"""Reads a context of kubeconfigs, with what the command line says instead, as kubectl does it. Certificates and tokens
are read without kubernetes_asyncio.

Its import takes 0.3 s, so it reads only the rest: exec plugins, OIDC, token files, passwords, proxies.
"""

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
from urllib.parse import quote

from jobset_gate.kube.errors import InvalidKubeConfig

T = TypeVar("T")
Json = dict[str, Any]

DEFAULT_PATH: Final = "~/.kube/config"

_SECTIONS: Final = {"contexts": "context", "clusters": "cluster", "users": "user"}
_FILES: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_CLUSTER: Final = {
    "server",
    "certificate-authority",
    "certificate-authority-data",
    "insecure-skip-tls-verify",
    "tls-server-name",
    "extensions",
}
_IMPERSONATION: Final = {"as", "as-uid", "as-groups", "as-user-extra"}
_USER: Final = {"client-certificate", "client-certificate-data", "client-key", "client-key-data", "token", "extensions"}
_OTHER_CREDENTIALS: Final = ("tokenFile", "username", "password", "exec", "auth-provider")
"""What a token of the command line takes the place of."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line says instead of the kubeconfig, as kubectl's options of these names; "" for nothing."""

    context: str = ""
    cluster: str = ""
    user: str = ""
    server: str = ""
    token: str = ""
    as_user: str = ""
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChosenContext:
    """A context after all files were merged and all overrides applied. `others`: the names of the other contexts."""

    places: str
    name: str
    namespace: str
    cluster: Json
    user: Json
    others: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """For people."""
        return f"kubeconfig {self.places}, " + (f"context {self.name}" if self.name else "no context")


@dataclass(frozen=True, slots=True)
class KubeContext:
    """A context. `ca`, `certificate` and `key` are PEM texts, "" for none; `authorization` is the header's value."""

    chosen: ChosenContext
    server: str
    ca: str
    verify: bool
    """Whether the server's certificate is verified."""
    server_name: str | None
    certificate: str
    key: str
    authorization: str | None
    proxy: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """Of impersonation."""

    def new_tls(self) -> ssl.SSLContext:
        """The client's side of TLS. Raises InvalidKubeConfig."""
        try:
            with in_memory_file(self.ca.encode()) as file:  # as `cadata` it could have no comment beyond ASCII
                tls = ssl.create_default_context(cafile=file if self.ca else None)
        except ssl.SSLError as error:
            raise InvalidKubeConfig(f"the certificate authority of context {self.chosen.name}: {error}") from error
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
                raise InvalidKubeConfig(f"the client certificate of context {self.chosen.name}: {error}") from error


async def read_context(path: str | None, overrides: Overrides) -> KubeContext:
    """The current context, unless the overrides name another. Raises InvalidKubeConfig.

    `path` None: $KUBECONFIG, which may list several files, or ~/.kube/config.
    """
    chosen = choose_context(path or os.environ.get("KUBECONFIG") or DEFAULT_PATH, overrides)
    return read_plain(chosen) or await read_by_library(chosen)


# --- The files -------------------------------------------------------------------------------------------------------


def choose_context(places: str, overrides: Overrides) -> ChosenContext:
    """Raises InvalidKubeConfig."""
    sections, current = _merge(places, required=not overrides.server)
    name = overrides.context or current
    if not name and not overrides.cluster and not overrides.server:
        raise InvalidKubeConfig(f"kubeconfig {places}: it has no current context{_list(sections['contexts'])}")
    context = _entry(places, sections, "contexts", name)
    cluster = _entry(places, sections, "clusters", overrides.cluster or context.get("cluster"))
    user = _entry(places, sections, "users", overrides.user or context.get("user"))
    if overrides.server:
        cluster = {key: value for key, value in cluster.items() if key != "tls-server-name"}
        cluster["server"] = overrides.server
    if overrides.token:
        user = {key: value for key, value in user.items() if key not in _OTHER_CREDENTIALS}
        user["token"] = overrides.token
    given = {"as": overrides.as_user, "as-uid": overrides.as_uid, "as-groups": list(overrides.as_groups)}
    user = user | {key: value for key, value in given.items() if value}
    others = tuple(sorted(it for it in sections["contexts"] if it != name))
    return ChosenContext(places, name, context.get("namespace") or "default", cluster, user, others)


def _merge(places: str, *, required: bool) -> tuple[dict[str, dict[str, Json]], str]:
    """The entries of each section by name, and the current context: the first file that names something counts."""
    from yaml import YAMLError, safe_load  # noqa: PLC0415 - a pod in the cluster reads no kubeconfig

    files = [Path(it).expanduser() for it in places.split(os.pathsep) if it]
    found: dict[str, dict[str, Json]] = {section: {} for section in _SECTIONS}
    current, there = "", [it for it in files if it.exists()]
    if not there and required:
        raise InvalidKubeConfig(f"kubeconfig {places}: there is no such file")
    for file in there:
        try:
            config = safe_load(file.read_text())
            current = current or _typed(config.get("current-context") or "", str)
            for section, key in _SECTIONS.items():
                names = [_typed(it["name"], str) for it in config.get(section) or ()]
                if twice := next((it for it in names if names.count(it) > 1), None):
                    raise InvalidKubeConfig(f"kubeconfig {file}: two {section} are called {twice}")
                entries = (_with_paths(_typed(it[key] or {}, dict), file.parent) for it in config.get(section) or ())
                found[section] = dict(zip(names, entries, strict=True)) | found[section]
        except (YAMLError, OSError, UnicodeDecodeError) as error:
            raise InvalidKubeConfig(f"kubeconfig {file}: {error}") from error
        except (TypeError, AttributeError, LookupError) as error:
            raise InvalidKubeConfig(f"kubeconfig {file}: this is no kubeconfig") from error
    return found, current


def _with_paths(entry: Json, folder: Path) -> Json:
    """Relative paths are relative to the kubeconfig's folder; a command without a slash is found on the PATH."""
    whole: Json = {key: str(folder / entry[key]) for key in _FILES if isinstance(entry.get(key), str) and entry[key]}
    plugin = entry.get("exec")
    if isinstance(plugin, dict) and "/" in str(plugin.get("command")):
        whole["exec"] = plugin | {"command": str(folder / plugin["command"])}
    return entry | whole


def _entry(places: str, sections: dict[str, dict[str, Json]], section: str, name: str | None) -> Json:
    """{} for no name."""
    if name and name not in sections[section]:
        why = f"there is no {_SECTIONS[section]} {name}{_list(sections[section])}"
        raise InvalidKubeConfig(f"kubeconfig {places}: {why}")
    return sections[section][name] if name else {}


def _list(entries: dict[str, Json]) -> str:
    return f"; there are {', '.join(sorted(entries))}" if entries else "; there are none"


def impersonation_headers(user: Json) -> tuple[tuple[str, str], ...]:
    """Raises InvalidKubeConfig for groups, a UID or more without a user, as kubectl does."""
    groups, extra = user.get("as-groups") or [], user.get("as-user-extra") or {}
    found = [("Impersonate-User", user.get("as")), ("Impersonate-Uid", user.get("as-uid"))]
    found += [("Impersonate-Group", it) for it in groups]
    found += [
        (f"Impersonate-Extra-{quote(key.lower(), safe='')}", it) for key, values in extra.items() for it in values
    ]
    headers = tuple((name, _typed(value, str)) for name, value in found if value)
    if headers and not user.get("as"):
        raise InvalidKubeConfig("a uid, groups or more cannot be impersonated without a user: --as names one")
    return headers


# --- What they say ---------------------------------------------------------------------------------------------------


def read_plain(chosen: ChosenContext) -> KubeContext | None:
    """Without the library; None if the context is not that plain, or wrong in any way."""
    cluster, user = chosen.cluster, chosen.user
    try:
        if not cluster.keys() <= _CLUSTER or not user.keys() <= _USER | _IMPERSONATION:
            return None
        if not cluster["server"].startswith(("https:", "http:")) or not isinstance(chosen.namespace, str):
            return None
        token = _typed(user.get("token") or "", str)
        return KubeContext(
            chosen=chosen,
            server=cluster["server"].rstrip("/"),
            ca=_pem(cluster, "certificate-authority"),
            verify=not _typed(cluster.get("insecure-skip-tls-verify", False), bool),
            server_name=_typed(cluster.get("tls-server-name") or "", str) or None,
            certificate=_pem(user, "client-certificate"),
            key=_pem(user, "client-key"),
            authorization=f"Bearer {token}" if token else None,
            headers=impersonation_headers(user),
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None  # the library reads it again, and its error is reported


async def read_by_library(chosen: ChosenContext) -> KubeContext:
    """By kubernetes_asyncio. Raises InvalidKubeConfig."""
    config, configuration = _import_library()
    loaded, it = configuration(), "it"
    context = {"cluster": it, "user": it, "namespace": chosen.namespace}
    whole = {
        "current-context": it,
        "contexts": [{"name": it, "context": context}],
        "clusters": [{"name": it, "cluster": chosen.cluster}],
        "users": [{"name": it, "user": chosen.user}],
    }
    try:
        await config.load_kube_config_from_dict(whole, client_configuration=loaded)
        ca, certificate, key = (
            Path(file).read_text() if file else ""  # noqa: ASYNC240 - local files
            for file in (loaded.ssl_ca_cert, loaded.cert_file, loaded.key_file)
        )
        token = loaded.api_key.get("BearerToken")
        return KubeContext(
            chosen=chosen,
            server=str(loaded.host).rstrip("/"),
            ca=ca,
            verify=loaded.verify_ssl,
            server_name=loaded.tls_server_name,
            certificate=certificate,
            key=key,
            authorization=str(token) if token else None,
            proxy=loaded.proxy,
            headers=impersonation_headers(chosen.user),
        )
    except (
        config.ConfigException,
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        AssertionError,  # a value is missing
    ) as error:
        # The text of these two is about its own code.
        reason = "this is no kubeconfig" if isinstance(error, TypeError | AttributeError) else str(error)
        raise InvalidKubeConfig(f"kubeconfig {chosen.places}: {reason}") from error


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


def _pem(entry: Json, key: str) -> str:
    """Data goes before a file."""
    data, file = entry.get(f"{key}-data"), entry.get(key)
    if data:
        return b64decode(_typed(data, str), validate=True).decode()
    return Path(_typed(file, str)).read_text() if file else ""


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
