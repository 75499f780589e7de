"""Is what a gang's ConfigMap holds to be believed? Whoever may edit ConfigMaps can write what looks like our verdict.

The first verdict of a generation wins (A6), so one of the other kind for the same generation is an edit. And a verdict
or a clock of a generation that has not begun is one; only a view of the JobSet that is old makes them look alike.
"""

from collections.abc import Iterable

import msgspec

from jobset_gate.barrier import messages
from jobset_gate.barrier.model import ConfigMapSeen, GangSnapshot, Generation, JobSetSeen, PodSeen, Verdict


def has_started(its: Generation, jobset: JobSetSeen, pods: Iterable[PodSeen]) -> bool:
    """Whether this generation is one that the JobSet has reached, as far as this view of it goes."""
    if its.uid != jobset.uid or its.attempt > jobset.attempt:
        return False
    return its.epoch <= jobset.epoch or any(pod.jobset_uid == its.uid and pod.epoch >= its.epoch for pod in pods)


def are_contradictory(one: Verdict | None, other: Verdict | None) -> bool:
    """Whether only one of them can have been taken."""
    return one is not None and other is not None and one.generation == other.generation and one.kind is not other.kind


def was_edited(verdict: Verdict, jobset: JobSetSeen, remembered: Verdict | None) -> bool:
    """Whether it stands where another was known to stand before."""
    return are_contradictory(verdict, _first(verdict, jobset, remembered))


def needs_verification(seen: GangSnapshot) -> bool:
    """Whether the ConfigMap holds something that this view does not bear out: the JobSet is to be read anew."""
    gate = _own_config_map(seen)
    if gate is None:
        return False
    verdict = _current_verdict(gate)
    if verdict is not None and was_edited(verdict, seen.jobset, seen.remembered):
        return True
    return not all(has_started(its, seen.jobset, seen.pods) for its in _generations(gate))


def without_edits(seen: GangSnapshot, live_jobset: JobSetSeen) -> GangSnapshot:
    """The view with only that in it which the JobSet bears out, as it stands in the API now."""
    seen = msgspec.structs.replace(seen, jobset=msgspec.structs.replace(seen.jobset, condition=live_jobset.condition))
    gate = _own_config_map(seen)
    if gate is None:
        return seen
    verdict, clock = _current_verdict(gate), gate.waiting_since
    if verdict is not None and not has_started(verdict.generation, live_jobset, seen.pods):
        verdict = None
    elif verdict is not None and was_edited(verdict, seen.jobset, seen.remembered):
        # Two memories may differ: the condition was told what stood there, and settles which is the right one.
        verdict = _first(verdict, seen.jobset, None) or seen.remembered
        seen = msgspec.structs.replace(seen, remembered=verdict)
    if clock is not None and not has_started(clock.generation, live_jobset, seen.pods):
        clock = None
    if (verdict, clock) == (gate.verdict, gate.waiting_since):
        return seen
    return msgspec.structs.replace(
        seen, config_map=msgspec.structs.replace(gate, verdict=verdict, waiting_since=clock, canonical=False)
    )


def _first(verdict: Verdict, jobset: JobSetSeen, remembered: Verdict | None) -> Verdict | None:
    """What is known of the first verdict for the same generation."""
    known = (remembered, _condition_verdict(jobset))
    return next((one for one in known if one is not None and one.generation == verdict.generation), None)


def _own_config_map(seen: GangSnapshot) -> ConfigMapSeen | None:
    return seen.config_map if seen.config_map is not None and seen.config_map.jobset_uid == seen.jobset.uid else None


def _current_verdict(gate: ConfigMapSeen) -> Verdict | None:
    """One on this life of the JobSet; what an earlier one left behind binds nobody."""
    return gate.verdict if gate.verdict is not None and gate.verdict.generation.uid == gate.jobset_uid else None


def _generations(gate: ConfigMapSeen) -> Iterable[Generation]:
    for entry in (gate.verdict, gate.waiting_since):
        if entry is not None and entry.generation.uid == gate.jobset_uid:
            yield entry.generation


def _condition_verdict(jobset: JobSetSeen) -> Verdict | None:
    return messages.verdict_in_condition(jobset.condition, jobset.uid)
