"""The page's metrics: how much it is asked, and how much that asks of the API server."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

CODES = ("2xx", "3xx", "4xx", "5xx")


class StatusPageMetrics:
    """A few counters; no names of viewers or gangs."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "jobset_gate_page_requests_total", "Answers of the status page, by code.", ["code"], registry=registry
        )
        self._reviews = Counter(
            "jobset_gate_page_reviews_total",
            "TokenReviews and SubjectAccessReviews made for viewers of the status page, by outcome.",
            ["kind", "outcome"],
            registry=registry,
        )
        self._streams = Gauge(
            "jobset_gate_page_streams_open", "Pages that are kept up to date at this moment.", registry=registry
        )
        for code in CODES:
            self._requests.labels(code)

    def observe_response(self, code: int) -> None:
        """A request was answered."""
        self._requests.labels(f"{code // 100}xx").inc()

    def observe_review(self, kind: str, outcome: str) -> None:
        """The API server was asked about a viewer."""
        self._reviews.labels(kind, outcome).inc()

    def set_open_streams(self, many: Callable[[], int]) -> None:
        """Where to read how many pages are open."""
        self._streams.set_function(many)
