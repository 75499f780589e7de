"""How to reach a cluster: server, credentials and proxy, from a kubeconfig or from the pod's service account."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from jobset_gate.kube.errors import InvalidKubeConfig
from jobset_gate.kube.kubeconfig import Overrides, impersonation_headers, read_context

PORTS = {"http": 80, "https": 443}
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REFRESH_SECONDS = 60.0  # tokens of service accounts and exec plugins rotate; files are renewed well before they expire
MIN_REFRESH_SECONDS = 5.0  # a token that the server rejects is fetched again, but not more often than this


@dataclass(frozen=True, slots=True)
class Access:
    """`server` is a URL without a trailing slash; `ssl` None means plain http, or https with the system's CAs.

    `token` returns the Authorization header: a bare bearer token or a whole value such as "Basic ...";
    None for no header (client certificates are in `ssl`). `namespace` is that of the context or of the pod.
    `token_rejected` is called after a 401, so that the next call fetches the token again.
    `server_name` is the name the server's certificate must carry if it is not the URL's; `proxy` an HTTP proxy's URL.
    `headers` go with each request: they impersonate. `timeout` in seconds is that of each request, if it is set.
    """

    server: str
    ssl: ssl.SSLContext | None = None
    token: Callable[[], Awaitable[str | None]] | None = None
    namespace: str = "default"
    server_name: str | None = None
    proxy: str | None = None
    token_rejected: Callable[[], None] | None = None
    headers: tuple[tuple[str, str], ...] = ()
    timeout: float | None = None
    origin: str = ""
    """Where it comes from, for people: the kubeconfig and its context."""
    other_contexts: tuple[str, ...] = ()


async def load_access(kubeconfig: str | None = None, overrides: Overrides = Overrides()) -> Access:  # noqa: B008 - frozen
    """The given kubeconfig; else the service account if this is a pod; else the default kubeconfig.

    Raises InvalidKubeConfig.
    """
    named = kubeconfig or overrides.context or overrides.cluster or overrides.user
    if named or not _in_pod(SERVICE_ACCOUNT):
        return await from_kubeconfig(kubeconfig, overrides)
    found = in_cluster(SERVICE_ACCOUNT)
    if overrides.token:
        found = replace(found, token=_fixed(overrides.token), token_rejected=None)
    user = {"as": overrides.as_user, "as-uid": overrides.as_uid, "as-groups": [*overrides.as_groups]}
    return replace(found, server=overrides.server or found.server, headers=impersonation_headers(user))


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
        return (account / "token").read_text().strip() or None  # in memory, of 1 KiB, once a minute

    token = _CachedToken(reread)
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ssl=trust,
        token=token,
        token_rejected=token.invalidate,
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        origin="the service account of this pod",
    )


async def from_kubeconfig(path: str | None = None, overrides: Overrides = Overrides()) -> Access:  # noqa: B008 - frozen
    """A context of a kubeconfig (default: its current one; $KUBECONFIG, ~/.kube/config), and what overrides it.

    Exec plugins, OIDC and token files are read again every minute while the Access is in use. The environment's proxy
    is used if the kubeconfig names none. Raises InvalidKubeConfig.
    """
    found = await read_context(path, overrides)
    tls = found.new_tls() if found.server.startswith("https:") else None

    async def reload() -> str | None:
        same = replace(overrides, context=found.chosen.name)  # by name: the file's current context may have changed
        latest = await read_context(path, same)
        if tls is not None:
            latest.load_certificate(tls)  # an exec plugin may give short-lived certificates
        return latest.authorization

    may_change = found.authorization is not None or found.certificate
    token = _CachedToken(reload, (found.authorization,)) if may_change else None
    return Access(
        server=found.server,
        ssl=tls,
        token=token,
        token_rejected=token.invalidate if token else None,
        namespace=found.chosen.namespace,
        server_name=found.server_name,
        proxy=proxy_for(found.server, os.environ, found.proxy),
        headers=found.headers,
        origin=found.chosen.origin,
        other_contexts=found.chosen.others,
    )


def _fixed(token: str) -> Callable[[], Awaitable[str | None]]:
    async def given() -> str | None:
        return token

    return given


class _CachedToken:
    """A token that is fetched again when the last fetch is a minute old; after a failed fetch the last token stays."""

    def __init__(self, fetch: Callable[[], Awaitable[str | None]], known: tuple[str | None] | None = None) -> None:
        self._fetch = fetch
        self._cached = known  # in a tuple, since None is a value
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
                return self._cached[0]
            try:
                self._cached = (await self._fetch(),)
            except (OSError, InvalidKubeConfig):  # half-written, or missing for a moment: the old one is still good
                if self._cached is None:
                    raise
            self._refresh_at = now + REFRESH_SECONDS
            return self._cached[0]


def _in_pod(account: Path) -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (account / "token").exists()


def _ca_context(ca: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=str(ca))
    except (OSError, ssl.SSLError) as error:
        raise InvalidKubeConfig(f"{ca}: {error}") from error


def proxy_for(server: str, environment: Mapping[str, str], named: str | None = None) -> str | None:
    """The proxy's URL: `named`, else that of HTTPS_PROXY, HTTP_PROXY and NO_PROXY as kubectl reads them; None for none.

    Raises InvalidKubeConfig for a proxy that does not speak HTTP, such as SOCKS.
    """
    proxy = named or _of_environment(urlsplit(server), environment)
    if not proxy:
        return None
    url = proxy if "://" in proxy else f"http://{proxy}"
    if urlsplit(url).scheme not in PORTS:
        raise InvalidKubeConfig(f"the proxy {proxy} of {server} does not speak HTTP")
    return url


def _of_environment(server: SplitResult, environment: Mapping[str, str]) -> str:
    proxy = _either(environment, f"{server.scheme}_proxy")
    if not proxy or is_loopback(server.hostname or ""):
        return ""
    exempt = (entry.strip() for entry in _either(environment, "no_proxy").split(","))
    return "" if any(_exempts(entry.lower(), server) for entry in exempt if entry) else proxy


def _either(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""


def is_loopback(host: str) -> bool:
    """Whether the host is this machine (or pod) itself."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _exempts(entry: str, server: SplitResult) -> bool:
    """Does an entry of NO_PROXY match the server: *, a network, an address, a domain, with or without a port?"""
    host = (server.hostname or "").lower()
    if entry == "*":
        return True
    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:
        pass  # one of the two is a name
    name, _, port = entry.rpartition(":") if entry.rpartition(":")[2].isdecimal() else (entry, "", "")
    if port and int(port) != (server.port or PORTS.get(server.scheme)):
        return False
    name = name.strip("[]").removeprefix("*")
    return host == name or host.endswith(name if name.startswith(".") else f".{name}")
