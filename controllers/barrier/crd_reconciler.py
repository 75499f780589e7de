"""Reconciles the JobSet CRD: keeps spec.groupSchedulingConfig in its schema (A2).

The owner's next apply removes the field, and without it any write of a gated JobSet prunes the stored value. So the CRD
is watched, and the field added as soon as it is missing.
"""

from collections.abc import Callable

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge

from controllers.barrier import crd_patcher
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden

FORBIDDEN_RETRY_SECONDS = 300.0
"""Seconds to the next attempt without the right to patch the CRD; the annotation works without the field."""

FORBIDDEN = "forbidden"
"""Outcome of a pass without the right to patch."""

OUTCOMES = ("extended", "already_there", "not_installed", FORBIDDEN)

_log = structlog.get_logger(__name__)


class CrdMetrics:
    """Counts passes over the JobSet CRD."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._passes = Counter(
            "jobset_gate_crd_passes_total",
            "Looks at the JobSet CRD, by what was found or done.",
            ["outcome"],
            registry=registry,
        )
        self._missing = Gauge(
            "jobset_gate_crd_field_missing",
            "1 while the JobSet CRD lacks the field and we may not add it.",
            registry=registry,
        )
        for outcome in OUTCOMES:
            self._passes.labels(outcome)

    def observe_pass(self, outcome: str) -> None:
        """After each pass of the CrdReconciler."""
        self._passes.labels(outcome.replace(" ", "_")).inc()
        self._missing.set(outcome == FORBIDDEN)


class CrdReconciler:
    """`on_outcome`: hook of the metrics."""

    def __init__(self, client: Client, on_outcome: Callable[[str], None] = lambda _: None) -> None:
        self._client, self._on_outcome = client, on_outcome

    async def reconcile(self, key: str) -> float | None:
        """Adds the field if it is missing; without the right to patch only logs."""
        try:
            outcome = await crd_patcher.extend_crd(self._client)
        except Forbidden as refused:
            self._on_outcome(FORBIDDEN)
            _log.warning("the JobSet CRD may not be extended; only the annotation form works", error=str(refused))
            return FORBIDDEN_RETRY_SECONDS
        self._on_outcome(outcome.value)
        _log.info("JobSet CRD reconciled", crd=key, outcome=outcome.value)
        return None
