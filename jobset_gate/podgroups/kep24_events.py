"""The Events that KEP-24 asks for: its pods and its groups are said to be unschedulable (G4)."""

from collections.abc import Iterator
from typing import Final

from jobset_gate import names
from jobset_gate.podgroups import generation
from jobset_gate.podgroups.event_model import EventContext, GroupEvent, group_event, pods_event, sort_by_name
from jobset_gate.podgroups.model import Flavor
from jobset_gate.podgroups.snapshot import MemberPod

MAX_EVENT_PODS: Final = 100
"""Pods that bear an Event of their own: a group may have thousands of them."""
TOO_FEW_EVENT_DELAY: Final = 5.0
"""Seconds after the newest member before the members of a small group are said to be unschedulable."""


def kep24_events(told: EventContext) -> Iterator[GroupEvent]:
    """Nothing for groups of the other designs."""
    if told.snapshot.group.key.design is Flavor.KEP_24:
        yield from _nameless(told)
        yield from _too_few(told)
        yield from _depleted(told)


def _too_few(told: EventContext) -> Iterator[GroupEvent]:
    """The pods of a group with too few of them are unschedulable, each is told so."""
    if told.reason.reason not in (names.REASON_GATHERING, names.REASON_CANNOT_GATHER):
        return
    held = _held(told)
    if not held:
        return
    due = max(it.created for it in held) + TOO_FEW_EVENT_DELAY
    text = f"its group {told.snapshot.group.key.path} has too few pods: {told.reason.message}"
    yield pods_event(names.REASON_UNSCHEDULABLE, text, held, once=str(told.snapshot.generation), due=due)


def _nameless(told: EventContext) -> Iterator[GroupEvent]:
    """A pod that names a group by an empty value is to be created again."""
    if told.snapshot.group.key.name:
        return
    held = _held(told)
    if held:
        text = f"the annotation {names.KEP24_NAME} is empty: create the pod again with the name of a PodGroup in it"
        yield pods_event(names.REASON_UNSCHEDULABLE, text, held, once="nameless")


def _depleted(told: EventContext) -> Iterator[GroupEvent]:
    """Some pods run, but the group cannot come to its minimum any more with those there are."""
    if told.counts.minimum == 0:
        return
    there = generation.member_table(told.snapshot).present
    running = sum(it.phase == "Running" for it in there)
    if running == 0 or len(there) >= told.counts.minimum:
        return
    succeeded = sum(it.phase == "Succeeded" for it in there)
    pending = len(there) - running - succeeded
    parts = f"{running} running, {pending} pending, {succeeded} succeeded"
    text = f"{len(there)} of {told.counts.minimum} pods are left: {parts}"
    yield group_event(
        told.snapshot, names.REASON_UNSCHEDULABLE, text, once=f"{told.snapshot.generation} {text}", warning=True
    )


def _held(told: EventContext) -> list[MemberPod]:
    return sort_by_name([it for it in told.snapshot.members if it.gated and not it.deleting])[:MAX_EVENT_PODS]
