"""Serving the page: where, its certificate, a port that is taken, connections without end, and the metrics."""

import asyncio
import socket
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from controllers.statuspage import server
from controllers.statuspage.middleware import PageOptions
from jobset_gate.cli import settings_file
from jobset_gate.cli.commands import controller as service
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.runtime.connections import ConnectionLimits
from tests.fakes import gangs
from tests.fakes.certificates import write_files
from tests.fakes.eventually import PATIENCE
from tests.fakes.served_page import http_session, serve_page
from webhook.certs.serving import self_signed


async def test_with_a_certificate_it_speaks_tls_and_its_cookie_is_for_tls_only(tmp_path: Path) -> None:
    bundle = self_signed()
    write_files(bundle, tmp_path)
    options = PageOptions(0, certificate=tmp_path / "tls.crt", key=tmp_path / "tls.key")
    trusting = ssl.create_default_context(cadata=bundle.ca.decode())
    async with serve_page(options) as stage, http_session(stage) as session:
        stage.api.admin()
        assert stage.url.startswith("https://")
        form = {"token": "admin-token"}
        async with session.post("/login", data=form, allow_redirects=False, ssl=trusting) as answer:
            cookie = answer.headers["Set-Cookie"]
            assert cookie.startswith("__Host-")
            assert "; Secure" in cookie
            assert "Strict-Transport-Security" in answer.headers
        async with session.get("/", ssl=trusting) as answer:
            assert answer.status == 200


async def test_a_port_that_is_taken_is_tried_until_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """And stops nobody meanwhile: nobody's gang waits for a page."""
    monkeypatch.setattr(server, "RETRY_SECONDS", 0.01)
    taken = socket.create_server(("127.0.0.1", 0))
    async with AsyncExitStack() as stack:
        options = PageOptions(taken.getsockname()[1])
        served_soon = asyncio.create_task(stack.enter_async_context(serve_page(options)))
        tried = socket.create_connection(taken.getsockname())  # another process still has it
        tried.close()
        await asyncio.sleep(0)
        assert not served_soon.done()
        taken.close()
        async with asyncio.timeout(PATIENCE):
            stage = await served_soon
        assert stage.url.endswith(f":{options.port}")


async def test_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """And those that say nothing make room for a viewer; an open stream is no request that takes too long."""
    monkeypatch.setattr(server, "LIMITS", ConnectionLimits(connections=3, request_seconds=1.0, evict_after_seconds=0.2))
    async with serve_page() as stage, AsyncExitStack() as stack:
        session = await stack.enter_async_context(http_session(stage, stage.api.admin()))
        news = await stack.enter_async_context(session.get("/events"))
        assert news.status == 200
        place = urlsplit(stage.url)
        mute = [await asyncio.open_connection(place.hostname, place.port) for _ in range(8)]
        for _, writer in mute:
            stack.callback(writer.transport.abort)
        async with asyncio.timeout(PATIENCE):
            for reader, _ in mute:
                assert await reader.read() == b""
        stage.put(gangs.jobset(), gangs.pod(0))
        async with asyncio.timeout(PATIENCE):
            async for line in news.content:
                if b"gang-default.train" in line:
                    break


async def test_metrics_count_answers_and_open_pages() -> None:
    async with serve_page() as stage:
        stage.put(gangs.jobset(), gangs.pod(0))
        registry = stage.registry
        async with http_session(stage, stage.api.admin()) as session:
            await session.get("/")
            await session.get("/nothing")
            async with session.get("/events") as answer:
                await answer.content.readline()
                assert registry.get_sample_value("jobset_gate_page_streams_open") == 1
        assert registry.get_sample_value("jobset_gate_page_requests_total", {"code": "2xx"}) == 1
        assert registry.get_sample_value("jobset_gate_page_requests_total", {"code": "4xx"}) == 1
        said = {"kind": "token", "outcome": "ok"}
        assert registry.get_sample_value("jobset_gate_page_reviews_total", said) == 1


# --- Settings ---------------------------------------------------------------------------------------------------------


def read(folder: Path, text: str) -> settings_file.ControllerSection:
    (folder / "settings.yaml").write_text(text)
    return settings_file.read(folder / "settings.yaml").controller


def test_the_file_says_where_and_the_command_line_wins(tmp_path: Path) -> None:
    said = read(
        tmp_path, "controller: {pagePort: 8083, pageAddress: '::', pageTlsCert: /tls/tls.crt, pageTlsKey: /tls/tls.key}"
    )
    wanted = service.options(said, page_port=9000, page_address=None)
    assert (wanted.page_port, wanted.page_address) == (9000, "::")
    assert service.options(settings_file.ControllerSection()).page_port == 0
    assert service.options(read(tmp_path, "controller: {pageAddress: 10.0.0.1}")).page_port == 0
    priced = read(tmp_path, "controller: {pagePort: 8083, pagePrices: {nvidia.com/gpu: 2.5}}")
    assert service.options(priced).page_prices == {"nvidia.com/gpu": 2.5}
    assert (wanted.page_tls_cert, wanted.page_tls_key) == (Path("/tls/tls.crt"), Path("/tls/tls.key"))


@pytest.mark.parametrize("price", ["-1", ".inf", ".nan", "cheap"])
def test_a_price_that_is_none_is_refused(tmp_path: Path, price: str) -> None:
    with pytest.raises(CommandError, match="pagePrices"):
        read(tmp_path, f"controller: {{pagePrices: {{nvidia.com/gpu: {price}}}}}")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("pageAddress: 0.0.0.0", "may not listen on 0.0.0.0 without TLS"),
        ("pageAddress: page.example", "may not listen on page.example without TLS"),
        ("pageTlsCert: /tls/tls.crt", "needs both"),
    ],
)
def test_what_would_show_tokens_to_others_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(CommandError, match=f"the status page {why}") as refused:
        service.options(read(tmp_path, f"controller: {{pagePort: 8083, {text}}}"))
    assert refused.value.code is ExitCode.USAGE


@pytest.mark.parametrize("address", ["'::1'", "localhost"])
def test_on_loopback_it_needs_no_certificate(tmp_path: Path, address: str) -> None:
    assert service.options(read(tmp_path, f"controller: {{pagePort: 8083, pageAddress: {address}}}")).page_port == 8083
