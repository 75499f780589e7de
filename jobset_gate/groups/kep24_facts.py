"""The Events that KEP-24 asks for: its pods and its groups are said to be unschedulable (G4)."""

from collections.abc import Iterator
from typing import Final

from jobset_gate import names
from jobset_gate.groups import generation
from jobset_gate.groups.fact import Fact, Scene, by_name, on_group, on_pods
from jobset_gate.groups.model import Design
from jobset_gate.groups.seen import MemberSeen

MOST_PODS: Final = 100
"""Pods that bear an Event of their own: a group may have thousands of them."""
PATIENCE: Final = 5.0
"""Seconds after the newest member before the members of a small group are said to be unschedulable."""


def facts(told: Scene) -> Iterator[Fact]:
    """Nothing for groups of the other designs."""
    if told.seen.group.key.design is Design.KEP_24:
        yield from _nameless(told)
        yield from _too_few(told)
        yield from _depleted(told)


def _too_few(told: Scene) -> Iterator[Fact]:
    """The pods of a group with too few of them are unschedulable, each is told so."""
    if told.standing.reason not in (names.REASON_GATHERING, names.REASON_CANNOT_GATHER):
        return
    held = _held(told)
    if not held:
        return
    due = max(it.created for it in held) + PATIENCE
    text = f"its group {told.seen.group.key.path} has too few pods: {told.standing.message}"
    yield on_pods(names.REASON_UNSCHEDULABLE, text, held, once=str(told.seen.generation), due=due)


def _nameless(told: Scene) -> Iterator[Fact]:
    """A pod that names a group by an empty value is to be created again."""
    if told.seen.group.key.name:
        return
    held = _held(told)
    if held:
        text = f"the annotation {names.KEP24_NAME} is empty: create the pod again with the name of a PodGroup in it"
        yield on_pods(names.REASON_UNSCHEDULABLE, text, held, once="nameless")


def _depleted(told: Scene) -> Iterator[Fact]:
    """Some pods run, but the group cannot come to its minimum any more with those there are."""
    if told.counts.minimum == 0:
        return
    there = generation.counted(told.seen).present
    running = sum(it.phase == "Running" for it in there)
    if running == 0 or len(there) >= told.counts.minimum:
        return
    succeeded = sum(it.phase == "Succeeded" for it in there)
    pending = len(there) - running - succeeded
    parts = f"{running} running, {pending} pending, {succeeded} succeeded"
    text = f"{len(there)} of {told.counts.minimum} pods are left: {parts}"
    yield on_group(told.seen, names.REASON_UNSCHEDULABLE, text, once=f"{told.seen.generation} {text}", warning=True)


def _held(told: Scene) -> list[MemberSeen]:
    return by_name([it for it in told.seen.members if it.gated and not it.deleting])[:MOST_PODS]
