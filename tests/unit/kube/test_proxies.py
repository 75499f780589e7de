"""Which proxy the environment wants."""

from __future__ import annotations

import pytest

from jobset_gate.kube.errors import InvalidKubeConfig
from jobset_gate.kube.proxies import proxy_for

P = "http://proxy:3128"
CLUSTER = "https://api.prod.example.com:6443"


@pytest.mark.parametrize(
    ("server", "environment", "expected"),
    [
        (CLUSTER, {}, None),
        (CLUSTER, {"HTTPS_PROXY": P}, P),
        (CLUSTER, {"https_proxy": P}, P),
        (CLUSTER, {"HTTPS_PROXY": "proxy:3128"}, P),
        (CLUSTER, {"HTTP_PROXY": P}, None),
        ("http://api.example.com", {"HTTP_PROXY": P}, P),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": P}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": P}, None),
        ("https://localhost:6443", {"HTTPS_PROXY": P}, None),
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
        ("*.example.com", CLUSTER, True),
        ("API.prod.example.com", CLUSTER, True),
        ("ample.com", CLUSTER, False),
        ("other.com, prod.example.com", CLUSTER, True),
        ("other.com,,", CLUSTER, False),
        ("example.com:6443", CLUSTER, True),
        ("example.com:443", CLUSTER, False),
        ("example.com:443", "https://example.com", True),
        ("10.0.0.0/8", "https://10.96.0.1", True),
        ("10.0.0.0/8", "https://11.0.0.1", False),
        ("10.0.0.0/8", CLUSTER, False),
        ("10.96.0.1", "https://10.96.0.1:6443", True),
        ("10.96.0.1:6443", "https://10.96.0.1:6443", True),
        ("fd00::/8", "https://[fd00::1]:6443", True),
        ("fd00::1", "https://[fd00::1]:6443", True),
        ("[fd00::1]:6443", "https://[fd00::1]:6443", True),
        ("[fd00::1]:443", "https://[fd00::1]:6443", False),
    ],
)
def test_what_no_proxy_names_is_reached_directly(no_proxy: str, server: str, direct: bool) -> None:
    found = proxy_for(server, {"HTTPS_PROXY": P, "NO_PROXY": no_proxy})
    assert found == (None if direct else P)


def test_a_proxy_that_was_named_counts_whatever_the_environment_says() -> None:
    assert proxy_for(CLUSTER, {"HTTPS_PROXY": P, "NO_PROXY": "*"}, "http://named:1") == "http://named:1"


@pytest.mark.parametrize("proxy", ["socks5://proxy:1080", "ftp://proxy"])
def test_a_proxy_that_does_not_speak_http_is_an_error_that_names_it(proxy: str) -> None:
    with pytest.raises(InvalidKubeConfig, match=proxy):
        proxy_for(CLUSTER, {}, proxy)
