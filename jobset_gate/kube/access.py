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
    plain = plain_kubeconfig.read(path or os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG, context)
    if plain is not None:
        return _from_plain(plain, path)
    loaded, chosen, namespace = await _load(path, context)
    server = str(loaded.host).rstrip("/")
    tls = _tls(loaded) if server.startswith("https:") else None

    async def reload() -> str | None:
        return await _reloaded(path, chosen, tls)

    may_change = _authorization(loaded) is not None or loaded.cert_file
    token = _CachedToken(reload, _Token(_authorization(loaded))) if may_change else None
    return Access(
        server=server,
        ssl=tls,
        token=token,
        token_rejected=token.invalidate if token else None,
        namespace=namespace,
        server_name=loaded.tls_server_name,
        proxy=proxy_for(server, os.environ, loaded.proxy),
    )


async def _reloaded(path: str | None, context: str, tls: ssl.SSLContext | None) -> str | None:
    """The Authorization header by now; by the context's name, since the file's current context may have changed."""
    latest, _, _ = await _load(path, context)
    if tls is not None and latest.cert_file:  # an exec plugin may give short-lived certificates
        tls.load_cert_chain(latest.cert_file, latest.key_file)
    return _authorization(latest)


def _from_plain(context: plain_kubeconfig.PlainContext, path: str | None) -> Access:
    """The Access of a plain context. The library reads it again if it changes while it is in use."""
    try:
        tls = ssl.create_default_context(cadata=context.ca or None)
    except ssl.SSLError as error:
        raise InvalidKubeConfig(f"the certificate authority of context {context.name}: {error}") from error
    if not context.verify:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    if context.certificate:
        _load_certificate(tls, context)

    async def reload() -> str | None:
        latest = plain_kubeconfig.read(path or os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG, context.name)
        if latest is None:
            return await _reloaded(path, context.name, tls)
        if latest.certificate:
            _load_certificate(tls, latest)
        return _bearer(latest)

    may_change = context.token or context.certificate
    token = _CachedToken(reload, _Token(_bearer(context))) if may_change else None
    return Access(
        server=context.server,
        ssl=tls,
        token=token,
        token_rejected=token.invalidate if token else None,
        namespace=context.namespace,
        server_name=context.server_name or None,
        proxy=proxy_for(context.server, os.environ, None),
    )


def _bearer(context: plain_kubeconfig.PlainContext) -> str | None:
    return f"Bearer {context.token}" if context.token else None


def _load_certificate(tls: ssl.SSLContext, context: plain_kubeconfig.PlainContext) -> None:
    """OpenSSL reads a certificate and its key from a file alone. Raises InvalidKubeConfig."""
    with tempfile.NamedTemporaryFile(mode="w", suffix=".pem") as file:  # readable by its owner alone
        file.write(f"{context.certificate}\n{context.key}")
        file.flush()
        try:
            tls.load_cert_chain(file.name)
        except (OSError, ssl.SSLError) as error:
            raise InvalidKubeConfig(f"the client certificate of context {context.name}: {error}") from error


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


async def _load(path: str | None, context: str | None) -> tuple[Configuration, str, str]:
    """The kubeconfig as kubernetes_asyncio loads it, the context's name and its namespace."""
    # Imported late: half a second and 55 MiB that neither `--help` nor a pod in the cluster must pay for.
    with _hide_module("kubernetes_validate"):
        from kubernetes_asyncio import config  # noqa: PLC0415
        from kubernetes_asyncio.client import Configuration  # noqa: PLC0415
    from yaml import YAMLError  # noqa: PLC0415

    loaded, places = Configuration(), path or os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG
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


def _tls(loaded: Configuration) -> ssl.SSLContext:
    tls = ssl.create_default_context(cafile=loaded.ssl_ca_cert)
    if not loaded.verify_ssl:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    if loaded.cert_file:
        tls.load_cert_chain(loaded.cert_file, loaded.key_file)
    return tls


def _authorization(loaded: Configuration) -> str | None:
    value = loaded.api_key.get("BearerToken")
    return str(value) if value else None
