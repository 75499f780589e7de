"""What leaves for a collector, and what an operator reads when it does not arrive."""

import asyncio
from itertools import count

import pytest

from jobset_gate.cli.serve.trace_exporter import OTLPTraceExporter
from jobset_gate.timeline.trace import Span, Trace
from tests.fakes.otlp_collector import OtlpCollector


def trace(number: int) -> Trace:
    root = Span(name="gang", span_id=7, start=10.0, end=12.5, links=((8, {"a": "b"}),), error="too late")
    pod = Span(name="pod w-0/1", span_id=8, parent_id=7, start=10.25, end=12.0, events=(("created", 10.25),))
    return Trace(number, (root, pod))


@pytest.fixture(autouse=True)
def _quick_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")


async def test_ids_times_links_events_and_errors_arrive_as_they_were_made() -> None:
    async with OtlpCollector() as collector:
        exporter = OTLPTraceExporter(collector.url + "/", "1.2.3", "me")
        exporter.export(trace(0xABC))
        await asyncio.to_thread(exporter.stop)
        root, pod = collector.spans
    assert (root.trace_id, root.span_id, root.parent_id) == ("abc".zfill(32), "7".zfill(16), "")
    assert (pod.trace_id, pod.span_id, pod.parent_id) == (root.trace_id, "8".zfill(16), root.span_id)
    assert (root.start, root.end, root.error, root.references) == (10.0, 12.5, "too late", (pod.span_id,))
    assert (pod.start, pod.end, pod.error, pod.logs) == (10.25, 12.0, None, ("created",))
    assert collector.services[0]["service.instance.id"] == "me"


async def test_a_collector_that_refuses_is_logged_once_until_it_accepts_again(caplog: pytest.LogCaptureFixture) -> None:
    async with OtlpCollector() as collector:
        exporter = OTLPTraceExporter(collector.url, "1.2.3", "me")
        for number, status in zip(count(1), (400, 400, 400, 200, 400, 400), strict=False):
            collector.status = status
            exporter.export(trace(number))
            await collector.requests(number)
        await asyncio.to_thread(exporter.stop)
    logged = [it.getMessage() for it in caplog.records if it.name.startswith("opentelemetry")]
    assert [it.partition(",")[0] for it in logged] == ["Failed to export spans batch code: 400"] * 2


async def test_a_full_queue_drops_spans_and_does_not_wait(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
    async with OtlpCollector() as collector:
        collector.answering.clear()
        exporter = OTLPTraceExporter(collector.url, "1.2.3", "me")
        for number in range(1, 7):
            exporter.export(trace(number))
        collector.answering.set()
        await asyncio.to_thread(exporter.stop)
    assert [it.getMessage() for it in caplog.records].count("Queue full, dropping Span.") == 1
    assert len(collector.spans) < 12
