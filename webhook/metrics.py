"""The metrics of the webhook: controller-runtime's names for admission webhooks, and our own."""

from functools import partial
from itertools import product
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from jobset_gate.sources.table import POD_SOURCES, WORKLOAD_SOURCES
from webhook.review import AdmissionResponse, Allowed, Patched

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_CALLS: Final = {
    "mutate": (WORKLOAD_SOURCES, ("CREATE", "UPDATE")),
    "validate": (WORKLOAD_SOURCES, ("CREATE", "UPDATE")),
    "mutate-pods": (("",), ("CREATE",)),
    "mutate-barrier-pods": (POD_SOURCES, ("CREATE",)),
}
"""The sources and operations that each webhook is registered for."""
_OUTCOMES: Final = ("allowed", "patched", "denied", "error")


class WebhookMetrics:
    """One registry for each webhook, so that two in one process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=self.registry), partial(Gauge, registry=self.registry)
        name = "controller_runtime_webhook_requests"
        self.requests = counter(name, "Admission requests by webhook and HTTP status.", ["webhook", "code"])
        self.in_flight = gauge(f"{name}_in_flight", "Admission requests being answered.", ["webhook"])
        self.latency = Histogram(
            "controller_runtime_webhook_latency_seconds",
            "Time to answer an admission request.",
            ["webhook"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.admission = counter(
            "jobset_gate_admission",
            "Answers for gangs, by their source, and for pods of groups, by outcome.",
            ["webhook", "source", "operation", "outcome"],
        )
        name = "jobset_gate_certificate"
        text = "Times that changed certificate files were read again, by result."
        self.certificate_reloads = counter(f"{name}_reloads", text, ["result"])
        text = "Unix time at which it runs out: serving, and the ca that it leads to where that is known."
        self.certificate_expiry = gauge(f"{name}_expiry_timestamp_seconds", text, ["certificate"])
        text = "Unix time from which it is good."
        self.certificate_issued = gauge(f"{name}_issued_timestamp_seconds", text, ["certificate"])
        text = "Certificates, CAs and caBundles made or written by this process."
        self.certificate_changes = counter(f"{name}_changes", text, ["what"])
        text = "Looks at certificate, CA and caBundle that found something which could not be done."
        self.certificate_check_failures = counter(f"{name}_check_failures", text)
        # All at zero, so that an `increase()` sees the first event.
        for webhook, (sources, operations) in _CALLS.items():
            for labels in product(sources, operations, _OUTCOMES):
                self.admission.labels(webhook, *labels)
        for result in ("ok", "failed"):
            self.certificate_reloads.labels(result)
        for what in ("ca", "leaf", "ca_bundle"):
            self.certificate_changes.labels(what)

    def add_trust_gauge(self) -> Gauge:
        """Only for a webhook that checks trust: another one must not show 0."""
        return Gauge(
            "jobset_gate_ca_bundle_trusted",
            "1 if the caBundle of all webhook configurations verifies what is served; only where that is looked at.",
            registry=self.registry,
        )


def outcome(answer: AdmissionResponse) -> str:
    """One word for an answer: allowed, patched, denied or error."""
    match answer:
        case Allowed():
            return "allowed"
        case Patched():
            return "patched"
        case _:
            return "error" if answer.code >= 500 else "denied"
