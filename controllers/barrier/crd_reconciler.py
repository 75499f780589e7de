"""The reconciler of the JobSet CRD: keeps spec.groupSchedulingConfig in its schema (A2).

The owner's next apply takes the field out without a word, and while it is out any write to a gated JobSet prunes its
stored value. So the CRD is watched, and the field put back as soon as it is gone.
"""

from collections.abc import Callable

import structlog

from controllers.barrier import crd_patcher
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden

FORBIDDEN_RETRY_SECONDS = 300.0
"""Seconds until a CRD is tried again that we may not change: the annotation form works without."""

FORBIDDEN = "forbidden"
"""What a pass has found that may not write."""

_log = structlog.get_logger(__name__)


class CrdReconciler:
    """One pass over the one CRD."""

    def __init__(self, client: Client, on_outcome: Callable[[str], None] = lambda _: None) -> None:
        """`told` is the hook of the metrics: what each pass has found."""
        self._client, self._on_outcome = client, on_outcome

    async def reconcile(self, key: str) -> float | None:
        """Puts the field in if it is missing. Without the right to do so it says so and goes on without."""
        try:
            outcome = await crd_patcher.extend_crd(self._client)
        except Forbidden as refused:
            self._on_outcome(FORBIDDEN)
            _log.warning("the JobSet CRD may not be extended; only the annotation form works", error=str(refused))
            return FORBIDDEN_RETRY_SECONDS
        self._on_outcome(outcome.value)
        _log.info("looked after the JobSet CRD", crd=key, outcome=outcome.value)
        return None
