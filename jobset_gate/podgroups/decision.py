"""The record that opens groups: what of them holds from then on, whatever their pods and PodGroups say later (G3)."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Final

import msgspec

from jobset_gate.podgroups import generation
from jobset_gate.podgroups.model import MergedGroup
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState, GangShare
from jobset_gate.podgroups.snapshot import GroupSnapshot

MAX_WAITS: Final[Mapping[AdmissionMode, Fraction]] = MappingProxyType(
    {AdmissionMode.PROBE: Fraction(3600), AdmissionMode.FIT: Fraction(86_400)}
)
"""Seconds that a limit can have, whatever a user has asked for: so long a group keeps a place, or room, from others."""


def new_record(seen: Sequence[GroupSnapshot], how: AdmissionMode, now: float) -> AdmissionRecord:
    """The record that opens these gangs together; it stands on the home of the first."""
    groups = [it.group for it in seen]
    shares = [_share(it) for it in seen]
    before = [it.record for it in seen if it.record is not None]
    return AdmissionRecord(
        generation=generation.next_generation(seen[0]),
        stage=AdmissionState.OPEN,
        how=how,
        at=now,
        gangs=tuple((it.group.key, generation.next_generation(it)) for it in seen),
        minimum=shares[0].minimum,
        wait=_wait(groups, how),
        mode=shares[0].mode,
        many=shares[0].many,
        newest=shares[0].newest,
        shares=tuple(shares) if len(shares) > 1 else (),
        rolled_back=max((it.rolled_back for it in before), default=0),
    )


def trusted_record(record: AdmissionRecord, group: MergedGroup, gangs: Sequence[MergedGroup]) -> AdmissionRecord:
    """The record of an open group, as far as members and PodGroup bear it out: whoever may write to its home may write
    any numbers. `gangs`: all groups of the decision that are there.
    """
    minimum = record.minimum if group.minimum is None else min(record.minimum, group.minimum)
    wait = min(record.wait, _wait(gangs, record.how))
    if record.stage is AdmissionState.CLOSED or (minimum, wait) == (record.minimum, record.wait):
        return record
    return msgspec.structs.replace(record, minimum=minimum, wait=wait)


def _wait(groups: Sequence[MergedGroup], how: AdmissionMode) -> Fraction:
    asked = max(it.wait for it in groups)
    return min(asked, MAX_WAITS.get(how, asked))


def _share(seen: GroupSnapshot) -> GangShare:
    members = generation.ready_members(seen)
    return GangShare(
        minimum=seen.group.minimum or 0,
        mode=seen.group.mode,
        many=len(members),
        newest=max((it.created for it in members), default=0.0),
    )
