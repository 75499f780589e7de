"""The gate stream holds requests, answers with the verdict, and turns away what is not of the gang (A6)."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from controllers.barrier.stream import server
from controllers.barrier.stream.keepalive import KEEPALIVE_INTERVAL
from controllers.barrier.stream.server import LISTEN_RETRY_SECONDS, MAX_REQUEST_BYTES, REQUEST_TIMEOUT
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import ConfigMapSeen
from jobset_gate.runtime.store import ObjectChange
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes import gangs
from tests.fakes.gangs import verdict
from tests.fakes.gate_stream import TRAIN, ServedStream, path, serving, until

TEXT = verdict_codec.render(verdict())


@pytest.fixture
async def gate(clock: VirtualClock) -> AsyncIterator[ServedStream]:
    async with serving(ServedStream(clock)) as made:
        yield made


# --- Holding and answering ------------------------------------------------------------------------------------------


async def test_a_held_request_gets_an_empty_line_now_and_then(gate: ServedStream, clock: VirtualClock) -> None:
    client = await (await gate.connect_and_ask()).held()
    since = clock()
    for beat in range(1, 4):
        assert await client.reader.readline() == b"\n"
        assert beat * KEEPALIVE_INTERVAL <= clock() - since <= beat * KEEPALIVE_INTERVAL + 3 * beat


async def test_only_pods_that_the_verdict_binds_are_answered(gate: ServedStream) -> None:
    asked = {"a": "u-1/0/0", "b": "u-1/0/1", "c": "u-1/0/2", "d": "u-1/1/0"}
    pods = {pod: await (await gate.connect_and_ask(pod, generation=its)).held() for pod, its in asked.items()}
    for said, bound in ((verdict(epoch=1), "ab"), (verdict(epoch=2), "c"), (verdict(attempt=1), "d")):
        await gate.book.answer_requests(TRAIN, said)
        assert {await pods.pop(pod).rest() for pod in bound} == {verdict_codec.render(said)}
        await until(lambda: gate.announced == set(pods))


@pytest.mark.parametrize(
    "kept",
    [
        gangs.config_map(verdict=verdict(attempt=1)),
        gangs.config_map(verdict=verdict(uid="u-0")),
        gangs.config_map(verdict=verdict(), workload_uid="u-0"),
        gangs.config_map(verdict=verdict(epoch=7)),
    ],
    ids=["of another attempt", "of another life", "in another life's ConfigMap", "of an epoch that has not begun"],
)
async def test_a_verdict_that_does_not_bind_the_pod_answers_nothing(gate: ServedStream, kept: ConfigMapSeen) -> None:
    gate.index.set_config_map(TRAIN, kept)
    await (await gate.connect_and_ask()).held()
    assert gate.announced == {"pod-workers-0-0"}


# --- Turned away ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "status"),
    [
        (path("pod", token="theirs"), 403),
        (path("pod", gang="default/other"), 403),
        (path("pod", gang="elsewhere/train"), 403),
        (path("pod", generation="u-1/0/-1"), 400),
        (path("pod", generation="u-1/0/"), 400),
        (path("pod", generation="u-1/0/1234567890"), 400),
        (path("pod", generation="/0/0"), 400),
        (path(""), 400),
        (path("p" * 65), 400),
        (path("pod") + "/more", 400),
        (path("pod").replace("v1", "v2"), 400),
        ("/healthz", 400),
    ],
)
async def test_what_is_not_of_the_gang_is_turned_away(gate: ServedStream, where: str, status: int) -> None:
    others = gangs.jobset(name="other", token="theirs")
    gate.index.on_workload(ObjectChange(("default", "other"), None, others))
    client = await gate.request(where)
    assert await client.status() == status
    assert "t0ken" not in await client.rest(), "the connection ends, and gives nothing away"
    assert gate.announced == set()


async def test_without_the_token_nobody_learns_which_gangs_are_there(gate: ServedStream) -> None:
    """The same answer, byte for byte, and the same in the metrics, which all pods may read."""
    refused = (
        path("pod", token="wrong"),
        path("pod", token=""),
        path("pod", gang="default/other", token="wrong"),
        path("pod", gang="elsewhere/train", token="wrong"),
        path("pod", generation="u-2/0/0", token="wrong"),
        path("pod", generation="u-2/0/0"),
    )
    answers = {await (await gate.request(where)).rest() for where in refused}
    gate.set_jobset(gangs.jobset(token=""))
    answers |= {await (await gate.connect_and_ask(token=token)).rest() for token in ("wrong", "", "t0ken")}
    assert len(answers) == 1
    assert set(gate.outcomes) == {"forbidden"}


@pytest.mark.parametrize(
    "text",
    ["\x16\x03\x01 hello", "GET", "GET  ", " ", f"GET {path('pod')}", "PRI * HTTP/2.0", f"POST {path('pod')} HTTP/1.1"],
)
async def test_garbage_is_refused(gate: ServedStream, text: str) -> None:
    client = await gate.connect()
    client.send(f"{text}\r\n\r\n")
    assert await client.status() == 400
    await client.rest()
    assert gate.outcomes == ["malformed"]


async def test_what_follows_the_request_is_not_listened_to(gate: ServedStream) -> None:
    client = await (await gate.connect_and_ask()).held()
    client.send(f"GET {path('another')} HTTP/1.1\r\n\r\n" + 100 * MAX_REQUEST_BYTES * "x")
    await asyncio.sleep(1.0)
    assert gate.announced == {"pod-workers-0-0"}
    await gate.book.answer_requests(TRAIN, verdict())
    assert await client.rest() == TEXT


# --- Bad clients ----------------------------------------------------------------------------------------------------


async def test_of_too_many_clients_that_say_nothing_the_oldest_is_dropped(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_IDLE", 3)
    async with serving(ServedStream(clock)) as gate:
        await (await gate.connect_and_ask(*gate.add_pods(1))).held()
        oldest, *others = [await gate.connect() for _ in range(4)]
        assert await oldest.rest() == ""
        assert gate.outcomes == ["too_many"]
        for pod, client in enumerate(others):
            client.send(f"GET {path(f'unrelated-{pod}')} HTTP/1.1\r\nHost: gate\r\n\r\n")
            await client.held()
        assert len(gate.announced) == 4, "who waits has lost nothing"


async def test_half_a_head_takes_no_more_than_a_head(gate: ServedStream) -> None:
    client = await gate.connect()
    client.send(f"GET {path('pod')} HTTP/1.1\r\nCookie: {'x' * (MAX_REQUEST_BYTES - 200)}")
    await asyncio.sleep(1.0)
    (held,) = gate.stream._connections
    assert len(held._read or b"") < MAX_REQUEST_BYTES
    client.send("x" * 200 + "\r\n\r\n")
    assert await client.status() == 431, "too long as a whole, though its end has come"


async def test_a_client_that_speaks_in_drops_is_dropped(gate: ServedStream, clock: VirtualClock) -> None:
    since, client = clock(), await gate.connect()
    for letter in "GET /v1/gangs/default":
        client.send(letter)
        await asyncio.sleep(1.0)
        if client.reader.at_eof():
            break
    assert REQUEST_TIMEOUT <= clock() - since <= REQUEST_TIMEOUT + 3


async def test_a_request_in_two_pieces_is_understood(gate: ServedStream) -> None:
    client = await gate.connect()
    asked = f"GET {path('pod')} HTTP/1.1\r\nHost: gate\r\n\r\n"
    client.send(asked[:40])
    await asyncio.sleep(REQUEST_TIMEOUT / 2)
    client.send(asked[40:])
    await client.held()


async def test_a_client_that_reads_nothing_is_given_up(gate: ServedStream, clock: VirtualClock) -> None:
    """Its window has closed, and what is not taken from us would pile up."""
    client, since = await (await gate.connect_and_ask()).held(), clock()
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]
    (held,) = gate.stream._connections
    assert held.transport is not None
    held.transport.write(bytes(8_000_000))
    await until(lambda: gate.outcomes == ["lost"])
    assert clock() - since <= KEEPALIVE_INTERVAL + 3
    assert gate.announced == set()


async def test_a_client_that_is_gone_is_not_answered_and_gets_no_more_signs_of_life(gate: ServedStream) -> None:
    await (await gate.connect_and_ask(*gate.add_pods(1))).held()
    (held,) = gate.stream._connections
    assert held.transport is not None
    held.transport.abort()
    await gate.book.answer_requests(TRAIN, verdict())
    await until(lambda: gate.outcomes == ["lost"])
    assert (gate.delivered, list(gate.stream.keepalive._last)) == (set(), [])


async def test_beyond_the_files_that_the_process_may_open_connections_are_turned_away(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = server.RESERVED_FILES + 2
    monkeypatch.setattr(resource, "getrlimit", lambda _: (few, few))
    async with serving(ServedStream(clock)) as gate:
        await (await gate.connect_and_ask("held")).held()
        assert await (await gate.connect_and_ask("another")).status() == 429
        await gate.connect()
        assert await (await gate.connect()).rest() == ""
        assert gate.outcomes == ["too_many"] * 2
        assert gate.announced == {"held"}, "who says nothing takes no place from who waits"


# --- Coming and going -----------------------------------------------------------------------------------------------


async def test_when_it_stops_it_closes_everything_and_answers_nothing(clock: VirtualClock) -> None:
    gate = ServedStream(clock)
    serving = asyncio.create_task(gate.stream.run())
    await until(lambda: gate.stream.url != "")
    held, mute = await (await gate.connect_and_ask()).held(), await gate.connect()
    where = urlsplit(gate.stream.url)
    await asyncio.sleep(1.0)
    serving.cancel()
    assert (await held.rest(), await mute.rest()) == ("", "")
    await asyncio.gather(serving, return_exceptions=True)
    assert (gate.stream.url, gate.book.count_open("jobset"), gate.announced) == ("", 0, set())
    with pytest.raises(ConnectionError):
        await asyncio.open_connection(where.hostname, where.port)
    for client in (held, mute):
        await client.close()


async def test_a_port_that_is_taken_is_tried_again(clock: VirtualClock) -> None:
    async with serving(ServedStream(clock)) as first:
        port = int(first.stream.url.rpartition(":")[2])
        second = ServedStream(clock, port=port)
        waiting = asyncio.create_task(second.stream.run())
        await asyncio.sleep(3 * LISTEN_RETRY_SECONDS)
        assert second.stream.url == ""
        assert not waiting.done()
    await until(lambda: second.stream.url != "")
    client = await (await second.connect_and_ask()).held()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await client.close()
