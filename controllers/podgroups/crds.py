"""CRDs of PodGroups: creates missing ones, updates its own, and leaves those of others alone (G5)."""

from collections.abc import Callable, Iterable
from enum import StrEnum

import structlog

from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, Forbidden, NotFound
from jobset_gate.kube.resources import CRDS
from jobset_gate.podgroups import crds
from jobset_gate.runtime.decoder import OnWatchProblem
from jobset_gate.runtime.informer import AnyInformer, object_informer
from jobset_gate.runtime.workqueue import Requeue

FORBIDDEN_RETRY_SECONDS = 300.0
"""Until a forbidden write is tried again: another client may create the CRD, or none may need it."""

_log = structlog.get_logger(__name__)


class PodGroupCrdOutcome(StrEnum):
    """The result of one reconcile."""

    CREATED = "created"
    UPDATED = "updated"
    CURRENT = "current"
    """Created by jobset-gate, of this version or a newer one."""
    FOREIGN = "foreign"
    """Created by another client, and usable."""
    UNUSABLE = "unusable"
    """Created by another client, and without fields that groups need."""
    LEAVING = "leaving"
    """Terminating."""
    FORBIDDEN = "forbidden"


class PodGroupCrdReconciler:
    """The keys of its queue are names of CRDs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.problems: dict[str, str] = {}
        """By API group: why its PodGroups cannot be used."""

    async def reconcile(self, name: str) -> float | None:
        """Returns the seconds until the next reconcile, if the CRD does not change before."""
        try:
            outcome, why = await self._reconcile(name)
        except Forbidden as refused:
            outcome, why = PodGroupCrdOutcome.FORBIDDEN, f"the CRD {name} may not be reconciled: {refused.message}"
        self.problems.pop(crds.GROUPS[name], None)
        if why:
            self.problems[crds.GROUPS[name]] = why
        log = _log.warning if why else _log.info
        log("CRD of pod groups reconciled", crd=name, outcome=outcome.value, **({"trouble": why} if why else {}))
        return FORBIDDEN_RETRY_SECONDS if outcome is PodGroupCrdOutcome.FORBIDDEN else None

    async def _reconcile(self, name: str) -> tuple[PodGroupCrdOutcome, str]:
        """The outcome, and why PodGroups of this CRD cannot be used, if so."""
        try:
            crd = await self._client.get(CRDS, name)
        except NotFound:
            # Applied: RBAC cannot grant create by name. If another client was faster, its fields conflict.
            await self._apply(name, crds.manifest(crds.GROUPS[name]), force=False)
            return PodGroupCrdOutcome.CREATED, ""
        if "deletionTimestamp" in crd["metadata"]:
            return PodGroupCrdOutcome.LEAVING, ""  # the informer reports the deletion
        if not crds.is_ours(crd):
            why = crds.why_unusable(crd)
            return (PodGroupCrdOutcome.UNUSABLE if why else PodGroupCrdOutcome.FOREIGN), why
        if crds.revision(crd) >= crds.REVISION:
            return PodGroupCrdOutcome.CURRENT, ""
        await self._apply(name, crds.update(crd), force=True)
        return PodGroupCrdOutcome.UPDATED, ""

    async def _apply(self, name: str, body: crds.Json, *, force: bool) -> None:
        manager = crds.MANAGER
        try:
            await self._client.patch(CRDS, name, body=body, patch=PatchType.APPLY, field_manager=manager, force=force)
        except (Conflict, NotFound) as lost:
            raise Requeue(str(lost)) from lost


def informers(
    client: Client, wanted: Iterable[str], enqueue: Callable[[str], None], on_problem: OnWatchProblem
) -> list[AnyInformer]:
    """One for each CRD. `enqueue` gets its name."""
    return [
        object_informer(client, CRDS, name, lambda change: enqueue(change.key[1]), on_problem=on_problem)
        for name in wanted
    ]
