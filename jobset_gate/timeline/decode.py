"""Decodes pods into timelines."""

from collections.abc import Collection, Iterable
from datetime import datetime

import msgspec

from jobset_gate import names
from jobset_gate.barrier import verdict_codec, wire
from jobset_gate.barrier.model import GangSnapshot, Generation, PodSeen
from jobset_gate.barrier.source import Source
from jobset_gate.barrier.wire import NO_LABELS
from jobset_gate.sources.decode import barrier_status, controller_owner, slot_of_pod
from jobset_gate.sources.jobset import NO_INDEX
from jobset_gate.sources.templates import NO_ANNOTATIONS, seconds
from jobset_gate.timeline.model import PodTimeline, Step
from jobset_gate.timeline.pulls import Pulls


def decode_pod(seen: wire.MemberPod, pulls: Pulls | None = None) -> PodTimeline:
    """Its way as far as its status and its kubelet's Events tell."""
    meta, status = seen.metadata, seen.status
    labels, notes = meta.labels or NO_LABELS, meta.annotations or NO_ANNOTATIONS
    barrier = barrier_status(status)
    mains = status.container_statuses or []
    started, released, gave_up = _gate(barrier)
    running, ran = _first(mains)
    times = {
        Step.CREATED: seconds(meta.creation_timestamp),
        Step.SCHEDULED: _scheduled(status),
        Step.STARTED: started,
        Step.RELEASED: released,
        Step.RUNNING: running,
        **_pulled(pulls or {}, [it.name for it in seen.spec.containers or ()]),
    }
    slot = slot_of_pod(labels, controller_owner(meta.owner_references))
    return PodTimeline(
        name=meta.name,
        uid=meta.uid,
        replicated_job=slot.replicated_job,
        job_index=slot.job_index,
        index=verdict_codec.parse_number(notes.index, NO_INDEX) if notes.index else None,
        node=seen.spec.node_name,
        phase=status.phase,
        alive=meta.deletion_timestamp is None and status.phase != "Failed",
        times={step: at for step, at in times.items() if at is not None},
        gone=_gone(seen, barrier, ran=ran),
        gave_up=gave_up,
        ended=_ended(mains),
        barrier_runs=1 + (barrier.restart_count if barrier else 0),
        generation=Generation(slot.workload_uid, slot.attempt, verdict_codec.parse_epoch(notes.epoch)),
    )


def pods_of_gang(seen: GangSnapshot, pods: Iterable[PodTimeline]) -> list[PodTimeline]:
    """The pods that a gang's selector finds; where pods are gated one by one, those of this gang, in its attempt.

    Nothing marks such a pod with its generation, and the selector finds pods of other owners, too.
    """
    if not seen.workload.source.gates_pods:
        return list(pods)
    known = {pod.uid: pod for pod in seen.pods}
    return [_placed(pod, known[pod.uid], seen.workload.source) for pod in pods if pod.uid in known]


def _placed(pod: PodTimeline, known: PodSeen, source: Source) -> PodTimeline:
    return msgspec.structs.replace(
        pod,
        index=known.index,
        shown_index="" if known.index is None else source.shown_index(known.index),
        replicated_job=known.replicated_job,
        job_index=known.job_index,
        generation=Generation(known.workload_uid, known.attempt, known.epoch),
    )


def _gate(barrier: wire.ContainerStatus | None) -> tuple[float | None, float | None, float | None]:
    """When it came to the gate, passed it, or ended there."""
    state = (barrier and barrier.state) or wire.ContainerState()
    run = _run(state)
    if run is None:
        return None, None, None
    start, end = seconds(run.started_at), seconds(run.finished_at)
    return (start, end, None) if state.running or run.exit_code == 0 else (start, None, end)


def _gone(seen: wire.MemberPod, barrier: wire.ContainerStatus | None, *, ran: bool) -> frozenset[Step]:
    """Steps that it has reached, whatever their times: those before them follow."""
    run = _run(barrier.state) if barrier is not None else None
    reached = {
        Step.SCHEDULED: bool(seen.spec.node_name),
        Step.STARTED: run is not None,
        Step.RELEASED: run is not None and run.exit_code == 0,
        Step.RUNNING: ran or seen.status.phase == "Succeeded",
    }
    return frozenset(step for step, is_reached in reached.items() if is_reached)


def _first(mains: Collection[wire.ContainerStatus]) -> tuple[float | None, bool]:
    """When the first main container started, and whether one did. The first of several runs may not be known."""
    runs = [(it.restart_count, it.state, it.last_state) for it in mains if it.state is not None]
    started = [(again, _run(last if again else now)) for again, now, last in runs if again or _run(now)]
    firsts = [seconds(run.started_at) if run is not None and again <= 1 else None for again, run in started]
    known = [at for at in firsts if at is not None]
    return (min(known) if known and len(known) == len(firsts) else None), bool(firsts)


def _run(state: wire.ContainerState | None) -> wire.StateDetail | None:
    return None if state is None else state.running or state.terminated


def _ended(mains: Collection[wire.ContainerStatus]) -> float | None:
    """When the last of them ended, if all have."""
    ends = [seconds(it.state.terminated.finished_at) for it in mains if it.state and it.state.terminated]
    known = [at for at in ends if at is not None]
    return max(known) if known and len(known) == len(mains) else None


def _scheduled(status: wire.PodStatus) -> float | None:
    for it in status.conditions or ():
        if it.type == "PodScheduled" and it.status == "True":
            return datetime.fromisoformat(it.last_transition_time).timestamp() if it.last_transition_time else None
    return None


def _pulled(pulls: Pulls, mains: Collection[str]) -> dict[Step, float | None]:
    there = [pulls[name] for name in mains if name in pulls]
    whole = bool(there) and len(there) == len(mains)
    return {Step.PULLED: pulls.get(names.BARRIER_CONTAINER), Step.MAIN_PULLED: max(there) if whole else None}
