"""How to reach a cluster and with which credentials: from a kubeconfig, or from the pod's service account."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobset_gate.kube import plain_kubeconfig
from jobset_gate.kube.errors import InvalidKubeConfig
from jobset_gate.kube.proxies import proxy_for

if TYPE_CHECKING:
    from kubernetes_asyncio.client import Configuration

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_KUBECONFIG = "~/.kube/config"
REFRESH_SECONDS = 60.0  # tokens of service accounts and exec plugins rotate; files are renewed well before they expire
MIN_REFRESH_SECONDS = 5.0  # a token that the server rejects is fetched again, but not more often than this


@dataclass(frozen=True, slots=True)
class Access:
    """`server` is a URL without a trailing slash; `ssl` None means plain http, or https with the system's CAs.

    `token` returns the Authorization header: a bare bearer token or a whole value such as "Basic ...";
    None for no header (client certificates are in `ssl`). `namespace` is that of the context or of the pod.
    `token_rejected` is called after a 401, so that the next call fetches the token again.
    `server_name` is the name the server's certificate must carry if it is not the URL's; `proxy` an HTTP proxy's URL.
    """

    server: str
    ssl: ssl.SSLContext | None = None
    token: Callable[[], Awaitable[str | None]] | None = None
    namespace: str = "default"
    server_name: str | None = None
    proxy: str | None = None
    token_rejected: Callable[[], None] | None = None


async def load_access(kubeconfig: str | None = None, context: str | None = None) -> Access:
    """The given kubeconfig; else the service account if this is a pod; else the default kubeconfig."""
    if kubeconfig is None and context is None and _in_pod(SERVICE_ACCOUNT):
        return in_cluster()
    return await from_kubeconfig(kubeconfig, context)


def in_cluster(account: Path = SERVICE_ACCOUNT) -> Access:
    """The pod's service account. Without kubernetes_asyncio, which costs 55 MiB and half a second for two files.

    Raises InvalidKubeConfig if there is none.
    """
    if not _in_pod(account):
        raise InvalidKubeConfig(f"not in a pod: KUBERNETES_SERVICE_HOST or {account / 'token'} is missing")
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    namespace, ca = account / "namespace", account / "ca.crt"
    trust = _ca_context(ca)

    async def reread() -> str | None:
        with suppress(OSError):  # the CAs before are still trusted
            trust.load_verify_locations(cafile=str(ca))  # else a process would not survive a new CA
        return await _read(account / "token")

    token = _CachedToken(reread)
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ssl=trust,
        token=token,
        token_rejected=token.invalidate,
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )


async def from_kubeconfig(path: str | None = None, context: str | None = None) -> Access:
    """A context of a kubeconfig (default: its current one; $KUBECONFIG, ~/.kube/config).

    Read by kubernetes_asyncio, unless it is a plain one with a certificate or a token. Exec plugins, OIDC and token
    files are read again every minute while the Access is in use. The environment's proxy is used if the kubeconfig
    names none. Raises InvalidKubeConfig.
    """
    found = await _read_context(path, context)
    tls = found.new_tls() if found.server.startswith("https:") else None

    async def reload() -> str | None:
        latest = await _read_context(path, found.name)  # by name: the file's current context may have changed
        if tls is not None:
            latest.load_certificate(tls)  # an exec plugin may give short-lived certificates
        return latest.authorization

    may_change = found.authorization is not None or found.has_certificate
    token = _CachedToken(reload, _Token(found.authorization)) if may_change else None
    return Access(
        server=found.server,
        ssl=tls,
        token=token,
        token_rejected=token.invalidate if token else None,
        namespace=found.namespace,
        server_name=found.server_name,
        proxy=proxy_for(found.server, os.environ, found.proxy),
    )


@dataclass(frozen=True, slots=True)
class _Token:
    value: str | None


class _CachedToken:
    """A token that is fetched again when the last fetch is a minute old; after a failed fetch the last token stays."""

    def __init__(self, fetch: Callable[[], Awaitable[str | None]], known: _Token | None = None) -> None:
        self._fetch = fetch
        self._cached = known
        self._refresh_at = asyncio.get_running_loop().time() + REFRESH_SECONDS if known else 0.0
        self._invalidated_at = -MIN_REFRESH_SECONDS
        self._lock = asyncio.Lock()

    def invalidate(self) -> None:
        """It was revoked, or its signer's key has changed: a minute of 401s would cost a leader its lease."""
        now = asyncio.get_running_loop().time()
        if now - self._invalidated_at >= MIN_REFRESH_SECONDS:
            self._refresh_at = self._invalidated_at = now

    async def __call__(self) -> str | None:
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if self._cached is not None and now < self._refresh_at:
                return self._cached.value
            try:
                self._cached = _Token(await self._fetch())
            except (
                OSError,
                InvalidKubeConfig,
            ):  # half-written, or missing for a moment: the old token is still good
                if self._cached is None:
                    raise
            self._refresh_at = now + REFRESH_SECONDS
            return self._cached.value


async def _read(path: Path) -> str | None:
    return path.read_text().strip() or None  # noqa: ASYNC240 - a file in memory, of 1 KiB, once a minute


def _in_pod(account: Path) -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (account / "token").exists()


def _ca_context(ca: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=str(ca))
    except (OSError, ssl.SSLError) as error:
        raise InvalidKubeConfig(f"{ca}: {error}") from error


async def _load(places: str, context: str | None) -> tuple[Configuration, str, str]:
    """The kubeconfig as kubernetes_asyncio loads it, the context's name and its namespace."""
    # Imported late: half a second and 55 MiB that neither `--help` nor a pod in the cluster must pay for.
    with _hide_module("kubernetes_validate"):
        from kubernetes_asyncio import config  # noqa: PLC0415
        from kubernetes_asyncio.client import Configuration  # noqa: PLC0415
    from yaml import YAMLError  # noqa: PLC0415

    loaded = Configuration()
    if not any(Path(it).expanduser().exists() for it in places.split(os.pathsep)):  # noqa: ASYNC240 - a local file
        raise InvalidKubeConfig(f"kubeconfig {places}: there is no such file")
    try:
        loader = await config.load_kube_config(places, context, loaded, persist_config=False)
        current: Any = loader.current_context
        return loaded, str(current["name"]), current["context"].get("namespace") or "default"
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


@contextmanager
def _hide_module(module: str) -> Iterator[None]:
    """As if it were not installed: kubernetes_asyncio imports it if it can, which takes two seconds."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]  # as the import system marks it
    try:
        yield
    finally:
        del sys.modules[module]


@dataclass(frozen=True, slots=True)
class _KubeContext:
    """A context of a kubeconfig, whichever reader it comes from. `load_certificate` does nothing if there is none."""

    name: str
    namespace: str
    server: str
    authorization: str | None
    has_certificate: bool
    server_name: str | None
    proxy: str | None
    new_tls: Callable[[], ssl.SSLContext]
    load_certificate: Callable[[ssl.SSLContext], None]


async def _read_context(path: str | None, context: str | None) -> _KubeContext:
    """By name, or the current one. Raises InvalidKubeConfig."""
    places = path or os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG
    plain = plain_kubeconfig.read(places, context)
    return _from_plain(plain) if plain is not None else _from_library(*await _load(places, context))


def _from_plain(plain: plain_kubeconfig.PlainContext) -> _KubeContext:
    def new_tls() -> ssl.SSLContext:
        try:
            tls = _client_tls(verify=plain.verify, cadata=plain.ca or None)
        except ssl.SSLError as error:
            raise InvalidKubeConfig(f"the certificate authority of context {plain.name}: {error}") from error
        load_certificate(tls)
        return tls

    def load_certificate(tls: ssl.SSLContext) -> None:
        if not plain.certificate:
            return
        with tempfile.NamedTemporaryFile(mode="w", suffix=".pem") as file:  # OpenSSL reads both from a file alone
            file.write(f"{plain.certificate}\n{plain.key}")
            file.flush()
            try:
                tls.load_cert_chain(file.name)
            except (OSError, ssl.SSLError) as error:
                raise InvalidKubeConfig(f"the client certificate of context {plain.name}: {error}") from error

    return _KubeContext(
        name=plain.name,
        namespace=plain.namespace,
        server=plain.server,
        authorization=f"Bearer {plain.token}" if plain.token else None,
        has_certificate=bool(plain.certificate),
        server_name=plain.server_name or None,
        proxy=None,
        new_tls=new_tls,
        load_certificate=load_certificate,
    )


def _from_library(loaded: Configuration, name: str, namespace: str) -> _KubeContext:
    def new_tls() -> ssl.SSLContext:
        tls = _client_tls(verify=loaded.verify_ssl, cafile=loaded.ssl_ca_cert)
        load_certificate(tls)
        return tls

    def load_certificate(tls: ssl.SSLContext) -> None:
        if loaded.cert_file:
            tls.load_cert_chain(loaded.cert_file, loaded.key_file)

    token = loaded.api_key.get("BearerToken")
    return _KubeContext(
        name=name,
        namespace=namespace,
        server=str(loaded.host).rstrip("/"),
        authorization=str(token) if token else None,
        has_certificate=bool(loaded.cert_file),
        server_name=loaded.tls_server_name,
        proxy=loaded.proxy,
        new_tls=new_tls,
        load_certificate=load_certificate,
    )


def _client_tls(*, verify: bool, cafile: str | None = None, cadata: str | None = None) -> ssl.SSLContext:
    tls = ssl.create_default_context(cafile=cafile, cadata=cadata)
    if not verify:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return tls
