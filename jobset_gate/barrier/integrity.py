"""Integrity checks of the verdict ConfigMap: any user who may edit ConfigMaps can forge a verdict.

A verdict was edited if it contradicts the first one of its generation (A6), or names a generation that has not started;
a stale cache looks the same, so the workload is read from the API to tell them apart.
"""

from collections.abc import Iterable

import msgspec

from jobset_gate.barrier import messages, verdict_codec
from jobset_gate.barrier.model import GangSnapshot, Generation, PodSeen, Verdict, WorkloadSeen


def has_started(its: Generation, workload: WorkloadSeen, pods: Iterable[PodSeen]) -> bool:
    """True if the workload, as given, has reached this generation."""
    if its.uid != workload.uid or its.attempt > workload.attempt:
        return False
    return its.epoch <= workload.epoch or any(pod.workload_uid == its.uid and pod.epoch >= its.epoch for pod in pods)


def was_edited(verdict: Verdict, workload: WorkloadSeen, remembered: Verdict | None) -> bool:
    """True if another verdict is known to be the first of this generation."""
    first = _first(verdict, workload, remembered)
    return first is not None and first.kind is not verdict.kind


def needs_verification(seen: GangSnapshot) -> bool:
    """True if the cached workload does not support the ConfigMap's content."""
    config_map, verdict = seen.own_config_map, seen.stored_verdict
    if config_map is None:
        return False
    if verdict is not None and was_edited(verdict, seen.workload, seen.remembered):
        return True
    entries = [it.generation for it in (config_map.verdict, config_map.waiting_since) if it is not None]
    return not all(has_started(it, seen.workload, seen.pods) for it in entries if it.uid == seen.workload.uid)


def is_config_map_canonical(seen: GangSnapshot) -> bool:
    """True if the ConfigMap exists with the content and owner that the controller writes."""
    return seen.own_config_map is not None and seen.own_config_map.canonical


def without_edits(seen: GangSnapshot, live_workload: WorkloadSeen) -> GangSnapshot:
    """The snapshot without ConfigMap content that the workload in the API does not support."""
    seen = msgspec.structs.replace(
        seen, workload=msgspec.structs.replace(seen.workload, condition=live_workload.condition)
    )
    config_map = seen.own_config_map
    if config_map is None:
        return seen
    verdict, clock = seen.stored_verdict, config_map.waiting_since
    if verdict is not None and not has_started(verdict.generation, live_workload, seen.pods):
        verdict = None
    elif verdict is not None and was_edited(verdict, seen.workload, seen.remembered):
        # Two processes may remember different verdicts; the condition decides, or what was sent to pods.
        texts = {pod.verdict for pod in seen.pods if pod.verdict}
        was_sent = any(_is_same(verdict, verdict_codec.parse(text)) for text in texts)
        verdict = _first(verdict, seen.workload, None) or (verdict if was_sent else seen.remembered)
        seen = msgspec.structs.replace(seen, remembered=verdict)
    if clock is not None and not has_started(clock.generation, live_workload, seen.pods):
        clock = None
    if (verdict, clock) == (config_map.verdict, config_map.waiting_since):
        return seen
    return msgspec.structs.replace(
        seen, config_map=msgspec.structs.replace(config_map, verdict=verdict, waiting_since=clock, canonical=False)
    )


def _is_same(one: Verdict, other: Verdict | None) -> bool:
    return other is not None and (one.kind, one.generation) == (other.kind, other.generation)


def _first(verdict: Verdict, workload: WorkloadSeen, remembered: Verdict | None) -> Verdict | None:
    """The first verdict of the same generation, if known."""
    known = (remembered, messages.verdict_in_condition(workload.condition, workload.uid))
    return next((one for one in known if one is not None and one.generation == verdict.generation), None)
