"""Keeps spec.groupSchedulingConfig in the JobSet CRD without owning any of its fields (A2).

The owner's next apply removes the field, and without it any write of a gated JobSet prunes the stored value. So the CRD
is watched, and the field added as soon as it is missing.
"""

import enum
from collections.abc import Callable
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge

from jobset_gate.barrier import crd as crd_schema
from jobset_gate.barrier.crd import Operation
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, Forbidden, Invalid, KubeError, NotFound, is_stale_patch
from jobset_gate.kube.resources import CRDS

ATTEMPTS = 8  # an attempt fails only if another client wrote the CRD between read and write
FORBIDDEN_RETRY_SECONDS = 300.0
"""Seconds to the next attempt without the right to patch the CRD; the annotation works without the field."""
FORBIDDEN = "forbidden"
Crd = dict[str, Any]

_log = structlog.get_logger(__name__)


class CrdNotExtendable(KubeError):
    """The installed JobSet CRD has no served v1alpha2 with a schema for spec."""


class CrdOutcome(enum.Enum):
    """Outcome of a call."""

    EXTENDED = "extended"
    ALREADY_THERE = "already there"
    NOT_INSTALLED = "not installed"
    REMOVED = "removed"
    NOT_THERE = "not there"


async def extend_crd(client: Client, *, name: str = crd_schema.CRD_NAME) -> CrdOutcome:
    """Adds the field if missing: EXTENDED, ALREADY_THERE or NOT_INSTALLED. Raises ApiError, CrdNotExtendable.

    Two patches; the next call completes one that crashed between them.
    """
    return await _change(client, name, crd_schema.extension, CrdOutcome.EXTENDED, CrdOutcome.ALREADY_THERE)


async def retract_crd(client: Client, *, name: str = crd_schema.CRD_NAME) -> CrdOutcome:
    """Removes the field that extend_crd() added: REMOVED, NOT_THERE or NOT_INSTALLED."""
    return await _change(client, name, crd_schema.retraction, CrdOutcome.REMOVED, CrdOutcome.NOT_THERE)


async def _change(
    client: Client, name: str, patch: Callable[[Crd], list[Operation]], done: CrdOutcome, nothing_to_do: CrdOutcome
) -> CrdOutcome:
    outcome = nothing_to_do
    for attempt in range(1, ATTEMPTS + 1):
        try:
            crd = await client.get(CRDS, name)
        except NotFound:
            return CrdOutcome.NOT_INSTALLED
        if not crd_schema.can_be_extended(crd):
            raise CrdNotExtendable(f"{name} has no served {crd_schema.VERSION} with a schema for spec")
        try:
            owners = crd_schema.managed_fields_without_us(crd)
            if operations := patch(crd):
                crd = await _patch(client, name, operations)
                outcome = done
            if not crd_schema.is_not_owner(crd):
                await _patch(client, name, crd_schema.restoration(crd, owners))
        except (Conflict, Invalid) as error:
            if attempt == ATTEMPTS or not is_stale_patch(error):
                raise
            continue
        return outcome
    raise AssertionError("unreachable: the last attempt returns or raises")


async def _patch(client: Client, name: str, operations: list[Operation]) -> Crd:
    return await client.patch(CRDS, name, body=operations, patch=PatchType.JSON, field_manager=crd_schema.MANAGER)


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
        for outcome in ("extended", "already_there", "not_installed", FORBIDDEN):
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
            outcome = await extend_crd(self._client)
        except Forbidden as refused:
            self._on_outcome(FORBIDDEN)
            _log.warning("the JobSet CRD may not be extended; only the annotation form works", error=str(refused))
            return FORBIDDEN_RETRY_SECONDS
        self._on_outcome(outcome.value)
        _log.info("JobSet CRD reconciled", crd=key, outcome=outcome.value)
        return None
