"""The webhook over HTTPS: malformed requests, health, metrics, shutdown."""

import asyncio
import io
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from jobset_gate.injection import inject
from tests.fakes.admission_reviews import body, patched, response
from tests.fakes.admission_server import admission_server, client, trusting
from tests.fakes.eventually import PATIENCE
from tests.fakes.jobsets import barrier, created, jobset
from webhook.bodies import LARGEST_BODY
from webhook.server import WebhookServer, random_suffix, random_token

JSON = {"Content-Type": "application/json"}
PATHS = ["/mutate", "/validate", "/mutate-pods"]


@pytest.fixture
async def opened() -> AsyncIterator[WebhookServer]:
    async with admission_server() as server:
        yield server


@pytest.fixture
async def session(opened: WebhookServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with client(opened) as made:
        yield made


async def post(session: aiohttp.ClientSession, path: str, data: Any, **headers: str) -> tuple[int, bytes]:
    """`data`: bytes, or an iterator of them."""
    sent = io.BytesIO(data) if isinstance(data, bytes) else data
    async with session.post(path, data=sent, headers=JSON | headers) as answer:
        return answer.status, await answer.read()


async def text(session: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with session.get(path) as answer:
        return answer.status, await answer.text()


async def alive(session: aiohttp.ClientSession) -> bool:
    status, answer = await post(session, "/mutate", body(jobset()))
    return status == 200 and bool(barrier(patched(jobset(), answer)))


async def test_a_body_that_is_no_review_is_a_bad_request_and_the_server_goes_on(session: aiohttp.ClientSession) -> None:
    for path in PATHS:
        for raw in (b"", b"{", b"\x00\xff" * 999, b'{"kind":"Pod"}', b"[" * 500_000):
            assert (await post(session, path, raw))[0] == 400, (path, raw[:20])
        assert (await post(session, path, b" " * (LARGEST_BODY + 1)))[0] == 413, path
        for kind in ("text/plain", "application/yaml", "application/octet-stream", "multipart/form-data"):
            assert (await post(session, path, body(jobset()), **{"Content-Type": kind}))[0] == 415, (path, kind)
    assert await alive(session)
    charset = {"Content-Type": "application/json; charset=utf-8"}
    status, answer = await post(session, "/validate", body(created(jobset())), **charset)
    assert (status, response(answer)["allowed"]) == (200, True)


async def test_an_unexpected_error_in_the_rules_is_a_refusal_with_a_message_and_the_server_goes_on(
    opened: WebhookServer, session: aiohttp.ClientSession
) -> None:
    def broken(_: Any) -> Any:
        msg = "something unexpected"
        raise KeyError(msg)

    handlers = opened._handlers
    good = dict(handlers)
    handlers.update(dict.fromkeys(handlers, broken))
    for path in PATHS:
        status, answer = await post(session, path, body(jobset()))
        refusal = response(answer)
        assert (status, refusal["allowed"], refusal["status"]["code"]) == (200, False, 500), path
        assert "KeyError: 'something unexpected'" in refusal["status"]["message"], path
        counted = f'outcome="error",source="jobset",webhook="{path[1:]}"}} 1.0'
        assert counted in (await text(session, "/metrics"))[1]
    handlers.update(good)
    assert await alive(session)


async def test_it_is_not_ready_while_a_check_has_a_reason() -> None:
    reasons: list[str | None] = ["caBundle does not trust the certificate", None]
    async with admission_server(ready=lambda: reasons[0]) as server, client(server) as session:
        assert await text(session, "/readyz") == (503, "caBundle does not trust the certificate\n")
        assert await text(session, "/healthz") == (200, "ok\n")
        reasons.pop(0)
        assert await text(session, "/readyz") == (200, "ok\n")


async def test_it_counts_what_it_does_from_zero_so_that_the_first_error_is_an_increase(
    session: aiohttp.ClientSession,
) -> None:
    _, message = await text(session, "/metrics")
    for line in (
        'jobset_gate_admission_total{operation="UPDATE",outcome="error",source="jobset",webhook="validate"} 0.0',
        'jobset_gate_admission_total{operation="CREATE",outcome="error",source="",webhook="mutate-pods"} 0.0',
        'jobset_gate_admission_total{operation="UPDATE",outcome="error",source="job",webhook="mutate"} 0.0',
        'jobset_gate_certificate_reloads_total{result="failed"} 0.0',
    ):
        assert line in message
    await post(session, "/mutate", body(jobset()))
    await post(session, "/mutate", body(jobset(config={"timeoutAfterSeconds": 0})))
    await post(session, "/validate", body(jobset(config=False)))
    await post(session, "/validate", b"garbage")
    await post(session, "/validate", b" " * (LARGEST_BODY + 1))
    _, message = await text(session, "/metrics")
    for line in (
        'controller_runtime_webhook_requests_total{code="200",webhook="mutate"} 2.0',
        'controller_runtime_webhook_requests_total{code="400",webhook="validate"} 1.0',
        'controller_runtime_webhook_requests_total{code="413",webhook="validate"} 1.0',
        'controller_runtime_webhook_latency_seconds_count{webhook="mutate"} 2.0',
        'controller_runtime_webhook_requests_in_flight{webhook="mutate"} 0.0',
        'jobset_gate_admission_total{operation="CREATE",outcome="patched",source="jobset",webhook="mutate"} 1.0',
        'jobset_gate_admission_total{operation="CREATE",outcome="denied",source="jobset",webhook="mutate"} 1.0',
        'jobset_gate_admission_total{operation="CREATE",outcome="allowed",source="jobset",webhook="validate"} 1.0',
    ):
        assert line in message
    for number in range(20):  # a label for each word that a client likes would grow for ever
        await post(session, "/mutate", body(jobset(), operation=f"OPERATION-{number}"))
    _, message = await text(session, "/metrics")
    counted = [line for line in message.splitlines() if line.startswith("jobset_gate_admission_total{")]
    assert len([line for line in counted if 'operation="OTHER"' in line]) == 1
    assert not any("OPERATION" in line for line in counted)


async def test_when_it_leaves_it_is_not_ready_and_lets_no_connection_live_on(
    opened: WebhookServer, session: aiohttp.ClientSession
) -> None:
    assert (await session.get("/healthz")).headers.get("Connection") != "close"
    opened.shutting_down = True
    assert await text(session, "/readyz") == (503, "shutting down\n")
    async with session.post("/mutate", data=body(jobset()), headers=JSON) as answer:
        assert answer.status == 200
        assert answer.headers["Connection"] == "close"


async def test_a_request_in_progress_is_answered_before_the_server_stops() -> None:
    arrived, go_on = asyncio.Event(), asyncio.Event()
    raw = body(jobset())

    async def slowly() -> AsyncIterator[bytes]:
        yield raw[:10]
        arrived.set()
        await go_on.wait()
        yield raw[10:]

    async with admission_server() as server, client(server) as session:
        request = asyncio.create_task(post(session, "/mutate", slowly()))
        await arrived.wait()
        closing = asyncio.create_task(server.stop())
        go_on.set()
        status, answer = await request
        await closing
        assert status == 200
        assert barrier(patched(jobset(), answer))
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get("/healthz")


async def test_a_port_that_is_taken_is_an_error_and_leaves_nothing_behind(opened: WebhookServer) -> None:
    before = asyncio.all_tasks()
    with pytest.raises(OSError, match=r"127.0.0.1:\d+: address already in use"):
        async with admission_server(port=int(opened.url.rpartition(":")[2])):
            pass
    assert asyncio.all_tasks() == before


def test_suffixes_and_tokens_are_drawn_and_may_stand_in_names_and_urls() -> None:
    tokens, suffixes = {random_token() for _ in range(100)}, {random_suffix() for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch(r"[0-9A-Za-z_-]{22}", token) for token in tokens)
    assert all(re.fullmatch(f"[{inject.SUFFIX_ALPHABET}]{{5}}", suffix) for suffix in suffixes)


@pytest.mark.parametrize("leaves", [True, False])
async def test_an_idle_connection_gets_a_503_and_does_not_keep_the_server_running(leaves: bool) -> None:
    """A request may be on its way just then: an API server takes this as its answer, and calls another replica."""
    async with admission_server() as server:
        place = urlsplit(server.url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port, ssl=trusting())
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readuntil(b"ok\n")).startswith(b"HTTP/1.1 200")
        stopping = asyncio.create_task(server.stop())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nRetry-After: 1\r\n" in head
        assert b"\r\nConnection: close\r\n" in head
        if leaves:
            writer.close()
        async with asyncio.timeout(PATIENCE):
            await stopping
            assert await reader.read() == b"", "the server has closed it"
        writer.close()
