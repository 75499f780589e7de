"""What the door counts: under the names that dashboards for admission webhooks know, and our own."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from webhook.review import Allowed, Answer, Patched

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Metrics:
    """The door's counters; each door has its own, so that two of them in one process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "controller_runtime_webhook_requests",
            "Admission requests by webhook and HTTP status.",
            ["webhook", "code"],
            registry=self.registry,
        )
        self.latency = Histogram(
            "controller_runtime_webhook_latency_seconds",
            "Time to answer an admission request.",
            ["webhook"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "controller_runtime_webhook_requests_in_flight",
            "Admission requests being answered.",
            ["webhook"],
            registry=self.registry,
        )
        self.admission = Counter(
            "jobset_gate_admission",
            "Answers to admission requests for gated JobSets.",
            ["webhook", "operation", "outcome"],
            registry=self.registry,
        )
        self.certificate_reloads = Counter(
            "jobset_gate_certificate_reloads",
            "Times the serving certificate was read again after a change.",
            ["result"],
            registry=self.registry,
        )


def outcome(answer: Answer) -> str:
    """One word for an answer: allowed, patched, denied or error."""
    match answer:
        case Allowed():
            return "allowed"
        case Patched():
            return "patched"
        case _:
            return "error" if answer.code >= 500 else "denied"
