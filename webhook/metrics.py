"""The metrics of the webhook: controller-runtime's names for admission webhooks, and our own."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from webhook.review import AdmissionResponse, Allowed, Patched

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class WebhookMetrics:
    """One registry for each webhook, so that two in one process do not mix."""

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
            "Answers for gated JobSets and for pods of groups: allowed, patched, denied, error.",
            ["webhook", "operation", "outcome"],
            registry=self.registry,
        )
        self.certificate_reloads = Counter(
            "jobset_gate_certificate_reloads",
            "Times that changed certificate files were read again: ok, failed.",
            ["result"],
            registry=self.registry,
        )
        self.certificate_expiry = Gauge(
            "jobset_gate_certificate_expiry_timestamp_seconds",
            "Unix time at which it runs out: serving, and the ca that it leads to where that is known.",
            ["certificate"],
            registry=self.registry,
        )
        self.certificate_issued = Gauge(
            "jobset_gate_certificate_issued_timestamp_seconds",
            "Unix time from which it is good.",
            ["certificate"],
            registry=self.registry,
        )
        self.certificate_changes = Counter(
            "jobset_gate_certificate_changes",
            "Certificates, CAs and caBundles made or written by this process.",
            ["what"],
            registry=self.registry,
        )
        self.certificate_check_failures = Counter(
            "jobset_gate_certificate_check_failures",
            "Looks at certificate, CA and caBundle that found something which could not be done.",
            registry=self.registry,
        )

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
