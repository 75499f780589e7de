"""What a controller that is no more has left behind besides gates: suspended owners, and its records (G4)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from controllers.podgroups import evictor_actions
from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Forbidden, NotFound
from jobset_gate.kube.resources import CONFIGMAPS, POD_GROUPS
from jobset_gate.objects.unstructured import as_list, as_map, nested
from jobset_gate.podgroups import eviction
from jobset_gate.podgroups.eviction import SuspendTarget

_RECORDS = f"{names.POD_GROUP_RECORD}={names.POD_GROUP_RECORD_VALUE}"
_NOTES = (names.POD_GROUP_RECORD, names.POD_GROUP_STATE)


@dataclass(slots=True)
class CleanupResult:
    """What was done, or would be."""

    owners: list[str] = field(default_factory=list)
    records: int = 0
    problems: list[str] = field(default_factory=list)


async def resume_owners(
    client: Client, namespace: str | None, wanted: Callable[[str], bool], cleared: CleanupResult, *, dry_run: bool
) -> None:
    """Lets Jobs and JobSets go on that we have suspended for groups whose label is wanted."""
    try:
        found = await evictor_actions.marked_owners(client, namespace)
    except Forbidden as refused:
        cleared.problems.append(f"whether Jobs and JobSets were suspended is not known: {refused}")
        return
    for root in found:
        if wanted(eviction.parse_mark(root.mark)[0]):
            await _resume(client, root, cleared, dry_run=dry_run)


async def _resume(client: Client, root: SuspendTarget, cleared: CleanupResult, *, dry_run: bool) -> None:
    title = f"{root.kind} {root.namespace}/{root.name}"
    try:
        if dry_run or await evictor_actions.resume_owner(client, root):
            cleared.owners.append(title)
    except ApiError as error:
        cleared.problems.append(f"{title} is not resumed: {error}")


async def remove_records(client: Client, namespace: str | None, cleared: CleanupResult, *, dry_run: bool) -> None:
    """Removes what was decided of groups: a controller that comes later must not go on with it."""
    await _of(client, namespace, cleared, dry_run=dry_run)
    for group in sorted(POD_GROUPS):
        await _of(client, namespace, cleared, dry_run=dry_run, pod_groups=group)


async def _of(
    client: Client, namespace: str | None, cleared: CleanupResult, *, dry_run: bool, pod_groups: str | None = None
) -> None:
    resource = POD_GROUPS[pod_groups] if pod_groups else CONFIGMAPS
    try:
        listed = await client.list(resource, namespace, label_selector="" if pod_groups else _RECORDS)
        for each in as_list(listed.get("items")):
            if pod_groups is None or _is_noted(each):
                cleared.records += 1
                await _remove(client, pod_groups, each, dry_run=dry_run)
    except NotFound:
        return  # this kind is not installed
    except ApiError as error:
        kind = f"PodGroups of {pod_groups}" if pod_groups else "ConfigMaps"
        cleared.problems.append(f"records on {kind} stay: {error}")


def _is_noted(pod_group: Any) -> bool:
    notes = as_map(nested(pod_group, "metadata", "annotations"))
    return any(it in notes for it in _NOTES)


async def _remove(client: Client, pod_groups: str | None, each: Any, *, dry_run: bool) -> None:
    if dry_run:
        return
    name, namespace, uid = (nested(each, "metadata", key) for key in ("name", "namespace", "uid"))
    try:
        if pod_groups is None:
            await client.delete(CONFIGMAPS, name, namespace, uid=uid)
            return
        body = {"metadata": {"uid": uid, "annotations": dict.fromkeys(_NOTES)}}
        await client.patch(POD_GROUPS[pod_groups], name, namespace, body=body, patch=PatchType.MERGE)
    except NotFound:
        return  # somebody else has removed it
