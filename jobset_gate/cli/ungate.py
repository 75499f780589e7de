"""Removes what pod groups leave behind without a controller: scheduling gates, suspended owners, records (G4)."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from controllers.podgroups import evictor_actions
from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Conflict, Forbidden, Invalid, InvalidResponse, NotFound, Unreachable
from jobset_gate.kube.resources import CONFIGMAPS, POD_GROUPS, PODS
from jobset_gate.objects.unstructured import as_list, as_map, nested
from jobset_gate.podgroups import decode, eviction, wire
from jobset_gate.podgroups.eviction import SuspendTarget
from jobset_gate.podgroups.model import Flavor, PodGroupKey, group_label
from jobset_gate.podgroups.snapshot import MemberPod
from jobset_gate.runtime.paging import ListScope, list_objects

PAGE: Final = 500
UNBOUND: Final = "spec.nodeName="
"""Field selector: a pod with a gate has no node. Our label is not asked for, since users may have removed it."""
_RECORDS: Final = f"{names.POD_GROUP_RECORD}={names.POD_GROUP_RECORD_VALUE}"
_ANNOTATIONS: Final = (names.POD_GROUP_RECORD, names.POD_GROUP_STATE)


@dataclass(slots=True)
class UngatedPods:
    """What became of some pods."""

    by_group: Counter[str] = field(default_factory=Counter)
    """By group."""
    gone: int = 0
    """Deleted meanwhile, or freed by another client."""
    failures: list[str] = field(default_factory=list)


async def gated_pods(client: Client, namespace: str | None, wanted: Callable[[MemberPod], bool]) -> list[MemberPod]:
    """Those that our gate holds and that are wanted, by namespace and name."""
    unbound = list_objects(client, ListScope(PODS, namespace, field_selector=UNBOUND), wire.GroupPod, PAGE)
    found = [pod async for it in unbound if (pod := decode.decode_member(it)).gated and wanted(pod)]
    return sorted(found, key=lambda it: (it.namespace, it.name))


def in_groups(group_names: Sequence[str], namespace: str) -> Callable[[MemberPod], bool]:
    """Whether a pod is in one of these groups of a namespace, whosever design they are."""
    keys = [PodGroupKey(design=design, namespace=namespace, name=name) for design in Flavor for name in group_names]
    labels = {group_label(key) for key in keys}

    def wanted(pod: MemberPod) -> bool:
        if pod.group_label:
            return pod.group_label in labels
        return pod.membership is not None and pod.membership.key in keys

    return wanted


def group_of(pod: MemberPod) -> str:
    """The group it is held for, for people."""
    if pod.membership is None or (pod.group_label and group_label(pod.membership.key) != pod.group_label):
        return f"{pod.namespace}/<of label {pod.group_label[:8]}>"
    return f"{pod.namespace}/{pod.membership.key.name or '<none>'} ({pod.membership.key.design})"


async def remove_gates(client: Client, held: Sequence[MemberPod], concurrency: int) -> UngatedPods:
    """Removes our gate from each of them; what goes wrong with one holds up no other."""
    freed, waiting = UngatedPods(), iter(held)

    async def work() -> None:
        for pod in waiting:
            await _free(client, pod, freed)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(concurrency, len(held))):
            tasks.create_task(work())
    return freed


async def _free(client: Client, pod: MemberPod, freed: UngatedPods) -> None:
    body = {
        "metadata": {"uid": pod.uid},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": names.POD_GROUP_GATE}]},
    }
    try:
        await client.patch(
            PODS, pod.name, pod.namespace, body=body, patch=PatchType.STRATEGIC, field_manager=names.FIELD_MANAGER
        )
    except (NotFound, Conflict):
        freed.gone += 1
    except Invalid as refused:
        # An API server calls the UID immutable when the name is another pod's by now.
        if any(as_map(it).get("field") == "metadata.uid" for it in as_list(refused.details.get("causes"))):
            freed.gone += 1
            return
        freed.failures.append(f"pod {pod.namespace}/{pod.name}: {refused}")
    except (ApiError, InvalidResponse, Unreachable) as error:
        freed.failures.append(f"pod {pod.namespace}/{pod.name}: {error}")
    else:
        freed.by_group[group_of(pod)] += 1


# --- Owners and records ----------------------------------------------------------------------------------------------


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
            if pod_groups is None or _has_record(each):
                cleared.records += 1
                await _remove(client, pod_groups, each, dry_run=dry_run)
    except NotFound:
        return  # this kind is not installed
    except ApiError as error:
        kind = f"PodGroups of {pod_groups}" if pod_groups else "ConfigMaps"
        cleared.problems.append(f"records on {kind} stay: {error}")


def _has_record(pod_group: Any) -> bool:
    annotations = as_map(nested(pod_group, "metadata", "annotations"))
    return any(it in annotations for it in _ANNOTATIONS)


async def _remove(client: Client, pod_groups: str | None, each: Any, *, dry_run: bool) -> None:
    if dry_run:
        return
    name, namespace, uid = (nested(each, "metadata", key) for key in ("name", "namespace", "uid"))
    try:
        if pod_groups is None:
            await client.delete(CONFIGMAPS, name, namespace, uid=uid)
            return
        body = {"metadata": {"uid": uid, "annotations": dict.fromkeys(_ANNOTATIONS)}}
        await client.patch(POD_GROUPS[pod_groups], name, namespace, body=body, patch=PatchType.MERGE)
    except NotFound:
        return  # another client has removed it
