"""Keeps the CRDs of PodGroups: makes the ones that are missing, updates ours, leaves everybody else's alone (G5)."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import partial

import structlog

from jobset_gate.barrier import wire
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, Forbidden, NotFound
from jobset_gate.kube.resources import CRDS
from jobset_gate.podgroups import crds
from jobset_gate.runtime.decoder import OnWatchProblem
from jobset_gate.runtime.informer import Informer, WatchSource
from jobset_gate.runtime.store import ObjectChange
from jobset_gate.runtime.workqueue import Requeue

FORBIDDEN_RETRY_SECONDS = 300.0
"""Seconds until we try again what we may not do: somebody else may make the CRD, or nobody may need it."""

_log = structlog.get_logger(__name__)


class PodGroupCrdOutcome(StrEnum):
    """What a pass over one CRD has come to."""

    CREATED = "created"
    UPDATED = "updated"
    CURRENT = "current"
    """It is ours, and as new as we know it or newer."""
    FOREIGN = "foreign"
    """Somebody else's, and good enough."""
    UNUSABLE = "unusable"
    """Somebody else's, and groups cannot be said with it."""
    LEAVING = "leaving"
    """It is being deleted."""
    FORBIDDEN = "forbidden"


class PodGroupCrdReconciler:
    """One pass over one CRD at a time; the queue's keys are their names."""

    def __init__(self, client: Client, told: Callable[[str, PodGroupCrdOutcome], None] = lambda _, __: None) -> None:
        """`told` is the hook of the metrics."""
        self._client, self._told = client, told
        self.problems: dict[str, str] = {}
        """API group to why its PodGroups cannot be used, for people."""

    async def reconcile(self, name: str) -> float | None:
        """Seconds until to look again, beside every change of the CRD."""
        try:
            outcome, why = await self._settle(name)
        except Forbidden as refused:
            outcome, why = PodGroupCrdOutcome.FORBIDDEN, f"the CRD {name} may not be looked after: {refused.message}"
        self._note(crds.GROUPS[name], why)
        self._told(name, outcome)
        say = _log.warning if why else _log.info
        say("looked after a CRD of pod groups", crd=name, outcome=outcome.value, **({"trouble": why} if why else {}))
        return FORBIDDEN_RETRY_SECONDS if outcome is PodGroupCrdOutcome.FORBIDDEN else None

    def _note(self, group: str, why: str) -> None:
        if why:
            self.problems[group] = why
        else:
            self.problems.pop(group, None)

    async def _settle(self, name: str) -> tuple[PodGroupCrdOutcome, str]:
        """What there was to do, and why groups cannot be said with this CRD, if so."""
        try:
            crd = await self._client.get(CRDS, name)
        except NotFound:
            return await self._create(name), ""
        if "deletionTimestamp" in crd["metadata"]:
            return PodGroupCrdOutcome.LEAVING, ""  # the watch tells when it is gone
        if not crds.is_ours(crd):
            why = crds.why_unusable(crd)
            return (PodGroupCrdOutcome.UNUSABLE if why else PodGroupCrdOutcome.FOREIGN), why
        return await self._update(name, crds.update(crd)) if crds.outdated(crd) else PodGroupCrdOutcome.CURRENT, ""

    async def _create(self, name: str) -> PodGroupCrdOutcome:
        # Applied, since the right to POST cannot be given by name. Somebody who was quicker has other fields: Conflict.
        await self._apply(name, crds.manifest(crds.GROUPS[name]), force=False)
        return PodGroupCrdOutcome.CREATED

    async def _update(self, name: str, body: crds.Json) -> PodGroupCrdOutcome:
        await self._apply(name, body, force=True)
        return PodGroupCrdOutcome.UPDATED

    async def _apply(self, name: str, body: crds.Json, *, force: bool) -> None:
        manager = crds.MANAGER
        try:
            await self._client.patch(CRDS, name, body=body, patch=PatchType.APPLY, field_manager=manager, force=force)
        except (Conflict, NotFound) as lost:
            raise Requeue(str(lost)) from lost


def informers(
    client: Client, wanted: Iterable[str], changed: Callable[[str], None], on_problem: OnWatchProblem
) -> list[Informer[wire.MetadataOnly, str]]:
    """One for each CRD, so that the right to watch can be given by name. `changed` gets that name.

    Nothing tells of a CRD that is not there: whoever starts these asks for a first pass over each.
    """

    def on_change(name: str, _: ObjectChange[str]) -> None:
        changed(name)

    return [
        Informer(
            client,
            WatchSource(
                CRDS,
                wire.MetadataOnly,
                lambda crd: crd.metadata.resource_version,
                partial(on_change, name),
                field_selector=f"metadata.name={name}",
            ),
            on_problem=on_problem,
        )
        for name in wanted
    ]
