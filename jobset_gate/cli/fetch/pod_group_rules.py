"""What was read of groups, told as the controller would tell it: a report for each, by the same rules."""

import asyncio
from collections.abc import Mapping
from typing import Final

from controllers.podgroups.owners import OwnerCapacityReader
from jobset_gate import names
from jobset_gate.cli.fetch.pod_groups import FetchedPodGroups
from jobset_gate.kube.client import Client
from jobset_gate.podgroups import podgroup_status, quota
from jobset_gate.podgroups.candidate import Admit, CapacityCheck, Hold
from jobset_gate.podgroups.evaluate import evaluate_all
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.owners import OwnerCapacity
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.podgroups.status import GroupStatus, group_status
from jobset_gate.settings import Groups

MOST_ASKED: Final = 100
"""Groups whose pods' owners are asked for: each costs a request or more."""


async def fetch_owner_capacity(
    client: Client, reading: FetchedPodGroups, owners: OwnerCapacityReader | None = None
) -> dict[PodGroupKey, tuple[OwnerCapacity, ...]]:
    """Who makes the pods of groups that are too few still: perhaps they can never be enough.

    `owners` remembers for a while what it was told, for who asks again and again.
    """
    owners = owners or OwnerCapacityReader(client)
    seen = (reading.cache.snapshot(key) for key in reading.cache.keys())  # noqa: SIM118 - no mapping
    few = [it for it in seen if it is not None and it.members and it.group.minimum and not it.group.gathered]
    found = await asyncio.gather(*(owners.capacities_of(it) for it in few[:MOST_ASKED]))
    return {it.group.key: made_by for it, made_by in zip(few, found, strict=False)}


def pod_group_reports(
    reading: FetchedPodGroups,
    settings: Groups,
    made_by: Mapping[PodGroupKey, tuple[OwnerCapacity, ...]],
    now: float,
    *,
    controlled: bool = False,
) -> list[GroupStatus]:
    """All groups that were read, by namespace and name. `controlled`: a controller runs, so that its words are new."""
    index = reading.cache
    seen = [it for key in index.keys() if (it := index.snapshot(key)) is not None]  # noqa: SIM118 - no mapping
    told = evaluate_all(
        seen,
        index.node_infos(),
        check=CapacityCheck.OFF if reading.nodes_forbidden else settings.capacity_check,
        starvation_seconds=settings.starvation_seconds,
        now=now,
        across_namespaces=settings.across_namespaces,
        creators=dict(made_by),
        short_of_quota=lambda it: quota.quota_shortage(it, index.quotas(it.group.key.namespace)),
        bound=index.accounts_for,
        excluded=index.excluded_nodes,
    )
    found = [group_status(it, now, _why(it, told.get(it.group.key), reading, controlled=controlled)) for it in seen]
    return sorted(found, key=lambda it: (it.key.namespace, it.key.name, it.key.design))


_BEYOND: Final = (names.REASON_CANNOT_GATHER, names.REASON_INVALID_GROUP, names.REASON_NATIVE_UNAVAILABLE)
"""What may depend on more than is read here: who makes the pods, their JobSets, the scheduler."""


def _why(
    seen: GroupSnapshot, own: Admit | Hold | GroupReason | None, reading: FetchedPodGroups, *, controlled: bool
) -> Admit | Hold | GroupReason | None:
    """Where our own view does not reach, the controller's last word."""
    said = published_status(seen)
    if said is None or own is None:
        return own
    if reading.nodes_forbidden and isinstance(own, Admit):
        return said
    return said if controlled and said.reason in _BEYOND else own


def published_status(seen: GroupSnapshot) -> GroupReason | None:
    """What the controller has written about a group."""
    condition = podgroup_status.group_condition(seen.pod_group_status)
    if condition:
        return GroupReason(reason=str(condition.get("reason", "")), message=str(condition.get("message", "")))
    parts = seen.annotations.get(names.POD_GROUP_STATE, "").split(": ", 2)
    return GroupReason(reason=parts[1], message=parts[2]) if len(parts) == 3 else None
