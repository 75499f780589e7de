"""What was read of groups, told as the controller would tell it: a report for each, by the same rules."""

import asyncio
from collections.abc import Mapping
from typing import Final

from controllers.groups.owners import Owners
from jobset_gate import names
from jobset_gate.cli.groups.reading import Reading
from jobset_gate.groups import kind_status, quota
from jobset_gate.groups.candidates import Check, Hold, Open
from jobset_gate.groups.creators import Creator
from jobset_gate.groups.model import Key
from jobset_gate.groups.outlook import outlook
from jobset_gate.groups.report import Report, report
from jobset_gate.groups.seen import GroupSeen
from jobset_gate.groups.standing import Standing
from jobset_gate.kube.client import Client
from jobset_gate.settings import Groups

MOST_ASKED: Final = 100
"""Groups whose pods' owners are asked for: each costs a request or more."""


async def makers(client: Client, reading: Reading, owners: Owners | None = None) -> dict[Key, tuple[Creator, ...]]:
    """Who makes the pods of groups that are too few still: perhaps they can never be enough.

    `owners` remembers for a while what it was told, for who asks again and again.
    """
    owners = owners or Owners(client)
    seen = (reading.index.observe(key) for key in reading.index.keys())  # noqa: SIM118 - no mapping
    few = [it for it in seen if it is not None and it.members and it.group.minimum and not it.group.gathered]
    found = await asyncio.gather(*(owners.creators(it) for it in few[:MOST_ASKED]))
    return {it.group.key: made_by for it, made_by in zip(few, found, strict=False)}


def reports(
    reading: Reading,
    settings: Groups,
    made_by: Mapping[Key, tuple[Creator, ...]],
    now: float,
    *,
    controlled: bool = False,
) -> list[Report]:
    """All groups that were read, by namespace and name. `controlled`: a controller runs, so that its words are new."""
    index = reading.index
    seen = [it for key in index.keys() if (it := index.observe(key)) is not None]  # noqa: SIM118 - no mapping
    told = outlook(
        seen,
        index.rooms(),
        check=Check.OFF if reading.blind else settings.capacity_check,
        starvation_seconds=settings.starvation_seconds,
        now=now,
        across_namespaces=settings.across_namespaces,
        creators=dict(made_by),
        short_of_quota=lambda it: quota.lacks(it, index.quotas(it.group.key.namespace)),
        bound=index.bound,
        avoided=index.avoided,
    )
    found = [report(it, now, _why(it, told.get(it.group.key), reading, controlled=controlled)) for it in seen]
    return sorted(found, key=lambda it: (it.key.namespace, it.key.name, it.key.design))


_BEYOND: Final = (names.REASON_CANNOT_GATHER, names.REASON_INVALID_GROUP, names.REASON_NATIVE_UNAVAILABLE)
"""What may depend on more than is read here: who makes the pods, their JobSets, the scheduler."""


def _why(
    seen: GroupSeen, own: Open | Hold | Standing | None, reading: Reading, *, controlled: bool
) -> Open | Hold | Standing | None:
    """Where our own view does not reach, the controller's last word."""
    said = published(seen)
    if said is None or own is None:
        return own
    if reading.blind and isinstance(own, Open):
        return said
    return said if controlled and said.reason in _BEYOND else own


def published(seen: GroupSeen) -> Standing | None:
    """What the controller has written about a group."""
    condition = kind_status.ours(seen.kind_status)
    if condition:
        return Standing(reason=str(condition.get("reason", "")), message=str(condition.get("message", "")))
    parts = seen.annotations.get(names.GANG_STATE, "").split(": ", 2)
    return Standing(reason=parts[1], message=parts[2]) if len(parts) == 3 else None
