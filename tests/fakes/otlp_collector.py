"""A collector of traces on loopback: decodes what arrives over OTLP/HTTP, and shows it as Jaeger would."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from tests.fakes.eventually import PATIENCE
from tests.fakes.loopback_server import LoopbackServer


@dataclass(frozen=True)
class ShownSpan:
    """Times are seconds since the epoch."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start: float
    end: float
    tags: Mapping[str, object]
    logs: tuple[str, ...]
    references: tuple[str, ...]
    """Ids of the spans that it links to."""
    error: str | None
    """Message of the status Error; None for another status."""


class OtlpCollector(LoopbackServer):
    """`async with OtlpCollector() as collector`; `url` is its base URL."""

    def __init__(self) -> None:
        super().__init__(self._receive)
        self.headers: list[Mapping[str, str]] = []
        self.services: list[dict[str, object]] = []
        """Attributes of the resource, of each request."""
        self.spans: list[ShownSpan] = []
        self.status = 200
        """Of the answers; spans of a request that is refused are dropped."""
        self.answering = asyncio.Event()
        """Clear it, and no request is answered."""
        self.answering.set()
        self._changed = asyncio.Event()

    async def trace_of(self, jobset: str) -> list[ShownSpan]:
        """The spans of the gang's trace, the root first, once all that the root links to have arrived."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for root in self.spans:
                    if root.tags.get("jobset_gate.jobset.name") == jobset:
                        found = [it for it in self.spans if it.trace_id == root.trace_id and it is not root]
                        if set(root.references) <= {it.span_id for it in found}:
                            return [root, *found]
                self._changed.clear()
                await self._changed.wait()

    async def requests(self, number: int) -> None:
        """Returns once so many have arrived."""
        async with asyncio.timeout(PATIENCE):
            while len(self.headers) < number:
                self._changed.clear()
                await self._changed.wait()

    async def _receive(self, request: web.Request) -> web.Response:
        assert (request.method, request.path) == ("POST", "/v1/traces")
        batch = ExportTraceServiceRequest()
        batch.ParseFromString(await request.read())
        self.headers.append(dict(request.headers))
        status = self.status
        await self.answering.wait()
        for resource in batch.resource_spans if status == 200 else ():
            self.services.append(_tags(resource.resource))
            for scope in resource.scope_spans:
                self.spans += [_shown(span) for span in scope.spans]
        self._changed.set()
        return web.Response(status=status, content_type="application/x-protobuf")


def _shown(span: ProtoSpan) -> ShownSpan:
    return ShownSpan(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        start=span.start_time_unix_nano / 1e9,
        end=span.end_time_unix_nano / 1e9,
        tags=_tags(span),
        logs=tuple(event.name for event in span.events),
        references=tuple(link.span_id.hex() for link in span.links),
        error=span.status.message if span.status.code == span.status.STATUS_CODE_ERROR else None,
    )


def _tags(holder: object) -> dict[str, object]:
    found = {}
    for pair in getattr(holder, "attributes"):  # noqa: B009 - spans and resources have them alike
        found[pair.key] = getattr(pair.value, pair.value.WhichOneof("value"))
    return found
