"""Sends traces over OTLP/HTTP by the OpenTelemetry SDK, the extra `traces`; imported only where tracing is enabled.

OpenTelemetry's own environment variables count: OTEL_EXPORTER_OTLP_*, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES,
OTEL_BSP_* and OTEL_TRACES_SAMPLER.
"""

import logging
import threading
from collections.abc import Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, StatusCode, TraceFlags, set_span_in_context

from jobset_gate import names
from jobset_gate.timeline.trace import Span, Trace

STOP_SECONDS: Final = 3.0
"""For what is queued when the process stops."""
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)


class OTLPTraceExporter:
    """The SDK's queue, which drops the oldest spans when full, and its thread, which retries for ten seconds."""

    def __init__(self, endpoint: str | None, version: str, instance: str) -> None:
        """`endpoint`: base URL of the collector, without the path of traces; None: that of the environment."""
        repeated = _FirstRecords()
        library = logging.getLogger("opentelemetry")
        library.handlers[:], library.propagate = [repeated], False
        ours = {"service.name": names.PROGRAM, "service.version": version, "service.instance.id": instance}
        self._ids = _GivenIds()
        self._provider = TracerProvider(
            resource=Resource.create().merge(Resource(ours)).merge(OTELResourceDetector().detect()),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces" if endpoint else None)
        self._provider.add_span_processor(BatchSpanProcessor(_Reporting(exporter, repeated)))
        self._tracer = self._provider.get_tracer(names.PROGRAM, version)

    def export(self, trace: Trace) -> None:
        """Queues it; a collector that is down is logged once, and delays nobody."""
        self._ids.trace_id = trace.trace_id
        for span in trace.spans:
            if not self._emit(trace.trace_id, span):
                return  # the sampler has dropped the root, and so the trace

    def stop(self) -> None:
        """Sends what is queued, for STOP_SECONDS at most. Blocks."""
        flush = threading.Thread(target=self._provider.shutdown, name="last traces", daemon=True)
        flush.start()
        flush.join(STOP_SECONDS)

    def _emit(self, trace_id: int, span: Span) -> bool:
        def other(span_id: int) -> SpanContext:
            return SpanContext(trace_id, span_id, is_remote=False, trace_flags=_SAMPLED)

        self._ids.span_id = span.span_id
        parent = Context()
        if span.parent_id:
            parent = set_span_in_context(NonRecordingSpan(other(span.parent_id)), parent)
        made = self._tracer.start_span(
            span.name,
            context=parent,
            attributes=span.attributes,
            links=[Link(other(linked), attributes) for linked, attributes in span.links],
            start_time=_nanoseconds(span.start),
        )
        for name, at in span.events:
            made.add_event(name, timestamp=_nanoseconds(at))
        if span.error:
            made.set_status(StatusCode.ERROR, span.error)
        sampled = made.is_recording()
        made.end(_nanoseconds(span.end))
        return sampled


class _GivenIds(IdGenerator):
    """The ids of the span that is being made."""

    trace_id = span_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id

    def generate_span_id(self) -> int:
        return self.span_id


class _FirstRecords(logging.Handler):
    """Hands each message of the library to the program's log once, until a batch has been delivered."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.seen: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg not in self.seen:
            self.seen.add(record.msg)
            logging.getLogger().handle(record)


class _Reporting(SpanExporter):
    """After a success the next failure is logged again."""

    def __init__(self, exporter: SpanExporter, repeated: _FirstRecords) -> None:
        self._exporter, self._repeated = exporter, repeated

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._repeated.seen.clear()
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


def _nanoseconds(moment: float) -> int:
    return round(moment * 1e9)
