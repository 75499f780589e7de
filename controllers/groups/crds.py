"""Keeps the CRDs of PodGroups: makes the ones that are missing, updates ours, leaves everybody else's alone (G5)."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import partial

import structlog

from controllers.gates import LookAgain
from jobset_gate import wire
from jobset_gate.groups import crds
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, Forbidden, NotFound
from jobset_gate.kube.informer import Informer
from jobset_gate.kube.problems import OnProblem
from jobset_gate.kube.resources import CRDS
from jobset_gate.kube.store import Change

RETRY_FORBIDDEN = 300.0
"""Seconds until we try again what we may not do: somebody else may make the CRD, or nobody may need it."""

_log = structlog.get_logger(__name__)


class Outcome(StrEnum):
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


class CrdKeeper:
    """One pass over one CRD at a time; the queue's keys are their names."""

    def __init__(self, client: Client, told: Callable[[str, Outcome], None] = lambda _, __: None) -> None:
        """`told` is the hook of the metrics."""
        self._client, self._told = client, told
        self.trouble: dict[str, str] = {}
        """API group to why its PodGroups cannot be used, for people."""

    async def reconcile(self, name: str) -> float | None:
        """Seconds until to look again, beside every change of the CRD."""
        try:
            outcome, why = await self._settle(name)
        except Forbidden as refused:
            outcome, why = Outcome.FORBIDDEN, f"the CRD {name} may not be looked after: {refused.message}"
        self._note(crds.GROUPS[name], why)
        self._told(name, outcome)
        say = _log.warning if why else _log.info
        say("looked after a CRD of pod groups", crd=name, outcome=outcome.value, **({"trouble": why} if why else {}))
        return RETRY_FORBIDDEN if outcome is Outcome.FORBIDDEN else None

    def _note(self, group: str, why: str) -> None:
        if why:
            self.trouble[group] = why
        else:
            self.trouble.pop(group, None)

    async def _settle(self, name: str) -> tuple[Outcome, str]:
        """What there was to do, and why groups cannot be said with this CRD, if so."""
        try:
            crd = await self._client.get(CRDS, name)
        except NotFound:
            return await self._create(name), ""
        if "deletionTimestamp" in crd["metadata"]:
            return Outcome.LEAVING, ""  # the watch tells when it is gone
        if not crds.is_ours(crd):
            why = crds.unusable(crd)
            return (Outcome.UNUSABLE if why else Outcome.FOREIGN), why
        return await self._update(name, crds.update(crd)) if crds.outdated(crd) else Outcome.CURRENT, ""

    async def _create(self, name: str) -> Outcome:
        # Applied, since the right to POST cannot be given by name. Somebody who was quicker has other fields: Conflict.
        await self._apply(name, crds.manifest(crds.GROUPS[name]), force=False)
        return Outcome.CREATED

    async def _update(self, name: str, body: crds.Json) -> Outcome:
        await self._apply(name, body, force=True)
        return Outcome.UPDATED

    async def _apply(self, name: str, body: crds.Json, *, force: bool) -> None:
        manager = crds.MANAGER
        try:
            await self._client.patch(CRDS, name, body=body, patch=PatchType.APPLY, field_manager=manager, force=force)
        except (Conflict, NotFound) as lost:
            raise LookAgain(str(lost)) from lost


def informers(
    client: Client, wanted: Iterable[str], changed: Callable[[str], None], on_problem: OnProblem
) -> list[Informer[wire.Bare, str]]:
    """One for each CRD, so that the right to watch can be given by name. `changed` gets that name.

    Nothing tells of a CRD that is not there: whoever starts these asks for a first pass over each.
    """

    def on_change(name: str, _: Change[str]) -> None:
        changed(name)

    return [
        Informer(
            client,
            CRDS,
            wire=wire.Bare,
            convert=lambda crd: crd.metadata.resource_version,
            handler=partial(on_change, name),
            field_selector=f"metadata.name={name}",
            on_problem=on_problem,
        )
        for name in wanted
    ]
