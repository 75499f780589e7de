"""The HTTP proxy of a server by HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as kubectl reads them."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from jobset_gate.kube.errors import InvalidKubeConfig

SCHEMES = ("http", "https")
PORTS = {"http": 80, "https": 443}


def proxy_for(server: str, environment: Mapping[str, str], named: str | None = None) -> str | None:
    """The proxy's URL: `named`, else the environment's; None for a direct connection.

    Raises InvalidKubeConfig for a proxy that does not speak HTTP, such as SOCKS.
    """
    proxy = named or _of_environment(urlsplit(server), environment)
    if not proxy:
        return None
    url = proxy if "://" in proxy else f"http://{proxy}"
    if urlsplit(url).scheme not in SCHEMES:
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
