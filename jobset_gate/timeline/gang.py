"""The timeline of a gang's present attempt, from what the cluster still knows of it."""

from collections.abc import Iterable, Sequence

import msgspec

from jobset_gate import names
from jobset_gate.barrier import messages
from jobset_gate.barrier.model import ConfigMapSeen, Generation, Verdict, VerdictKind, WorkloadSeen
from jobset_gate.explain.text import format_pod_count as pods_
from jobset_gate.timeline.model import PodTimeline, Step, Timeline

WHOLE_SECONDS = (
    "the cluster keeps these times in whole seconds, by the clocks of its nodes: differences of 1s mean little"
)


def gang_timeline(
    workload: WorkloadSeen,
    gate: ConfigMapSeen | None,
    pods: Iterable[PodTimeline],
    now: float,
    notes: Sequence[str] = (),
) -> Timeline:
    """Pods of earlier attempts, and those that others have replaced, are left out; the notes say so."""
    devices = {target.name: target.devices for target in workload.targets}
    ours = [pod for pod in pods if pod.replicated_job in devices]
    mine = [pod for pod in ours if (pod.generation.uid, pod.generation.attempt) == (workload.uid, workload.attempt)]
    kept = [msgspec.structs.replace(pod, devices=devices[pod.replicated_job]) for pod in _slots(mine)]
    verdict = _verdict(workload, gate, kept)
    opened = _opened(workload, gate, verdict, kept)
    first, late = _parted(_ordered(workload, kept), opened)
    clock = gate.waiting_since if gate is not None else None
    since = clock.at if clock is not None and _present(workload, kept, clock.generation) else None
    gone = verdict is not None and (workload.finished or verdict.kind is VerdictKind.TIMEOUT)
    counted = messages.parse_progress(verdict.message) if verdict is not None and gone else None
    made = Timeline(
        source=workload.source,
        namespace=workload.namespace,
        name=workload.shown_name,
        attempt=workload.attempt,
        now=now,
        created=workload.created or None,
        waiting_since=since,
        verdict=verdict.cause if verdict is not None else _condition_reason(workload, opened),
        opened=opened,
        timed_out=_timed_out(workload, verdict, since),
        decision=verdict.message if verdict is not None and gone else "",
        counted=counted[0] if counted else None,
        expected=counted[1] if counted else sum(target.expected for target in workload.targets),
        finished=workload.finished,
        pods=first,
        replacements=late,
    )
    return msgspec.structs.replace(made, notes=(*_notes(made, replaced=len(mine) - len(kept)), *notes))


# --- Which pods ------------------------------------------------------------------------------------------------------


def _slots(pods: Iterable[PodTimeline]) -> list[PodTimeline]:
    """One for each slot, the one that lives or else the last; of a NonIndexed Job those that live, if any do."""
    slots: dict[tuple[str, int, int | None], list[PodTimeline]] = {}
    for pod in pods:
        slots.setdefault((pod.replicated_job, pod.job_index, pod.index), []).append(pod)
    found: list[PodTimeline] = []
    for (_, _, index), some in slots.items():
        if index is not None:
            found.append(max(some, key=lambda it: (it.alive, it.times.get(Step.CREATED, 0.0), it.name)))
            continue
        found += [it for it in some if it.alive] or some
    return found


def _ordered(workload: WorkloadSeen, pods: Iterable[PodTimeline]) -> list[PodTimeline]:
    turn = {target.name: number for number, target in enumerate(workload.targets)}
    return sorted(pods, key=lambda it: (turn[it.replicated_job], it.job_index, it.index or 0, it.name))


def _parted(
    pods: Sequence[PodTimeline], opened: float | None
) -> tuple[tuple[PodTimeline, ...], tuple[PodTimeline, ...]]:
    """Those that the gate was opened for, and those that were made when it was open."""
    if opened is None:
        passed = [pod.times[Step.RELEASED] for pod in pods if Step.RELEASED in pod.times]
        opened = min(passed, default=None)
    if opened is None:
        return tuple(pods), ()
    late = [pod for pod in pods if pod.times.get(Step.CREATED, opened) > opened]
    if len(late) == len(pods):  # all are new: a Job's own restart; there is nothing else to show
        return tuple(pods), ()
    names = {pod.name for pod in late}
    return tuple(pod for pod in pods if pod.name not in names), tuple(late)


# --- What was decided ------------------------------------------------------------------------------------------------


def _present(workload: WorkloadSeen, pods: Sequence[PodTimeline], it: Generation) -> bool:
    """Whether it is about the pods that there are."""
    epoch = max((pod.generation.epoch for pod in pods), default=0)
    return it.covers(Generation(workload.uid, workload.attempt, epoch))


def _verdict(workload: WorkloadSeen, gate: ConfigMapSeen | None, pods: Sequence[PodTimeline]) -> Verdict | None:
    found = gate.verdict if gate is not None else None
    if found is None and workload.finished:
        found = messages.verdict_in_condition(workload.condition, workload.uid)
    return found if found is not None and _present(workload, pods, found.generation) else None


def _opened(
    workload: WorkloadSeen, gate: ConfigMapSeen | None, verdict: Verdict | None, pods: Sequence[PodTimeline]
) -> float | None:
    """Our condition turned True with the release, so it knows when: unless it speaks of an earlier one."""
    at = None if workload.condition is None else workload.condition.true_since
    if at is None or (gate is not None and verdict is None):
        return None
    if verdict is not None and verdict.kind is not VerdictKind.RELEASE:
        return None
    first = min((pod.times[Step.CREATED] for pod in pods if Step.CREATED in pod.times), default=at)
    return at if at >= first else None


def _timed_out(workload: WorkloadSeen, verdict: Verdict | None, since: float | None) -> float | None:
    """Nobody writes it down; the clock and the timeout say it."""
    if verdict is None or verdict.kind is not VerdictKind.TIMEOUT or verdict.cause == names.REASON_INDEX_FAILED:
        return None
    if since is None or workload.config.timeout is None:
        return None
    return since + workload.config.timeout


def _condition_reason(workload: WorkloadSeen, opened: float | None) -> str:
    """Without the ConfigMap: what the condition says, if it is about this attempt."""
    return workload.condition.reason if workload.condition is not None and opened is not None else ""


# --- What one has to know --------------------------------------------------------------------------------------------


def _notes(made: Timeline, *, replaced: int) -> list[str]:
    found = []
    if made.attempt:
        restart = "restart " if made.source is not None and made.source.restarts else ""
        found.append(f"this is {restart}attempt {made.attempt}; the pods of earlier ones are gone and not shown")
    if replaced:
        found.append(f"not shown: {pods_(replaced)}, failed or replaced by others")
    if made.replacements:
        many = pods_(len(made.replacements))
        found.append(f"{many} made after the gate was opened, as replacements: not in the skew, nor in pictures")
    pods = (*made.pods, *made.replacements)
    found += absent_note(made.expected - len(pods), str(made.expected))
    if any({Step.PULLED, Step.MAIN_PULLED} & pod.unknown_steps for pod in pods):
        found.append("the times of image pulls come from Events, which live an hour: of some pods it is not known")
    lost = sum(bool(pod.unknown_steps - {Step.PULLED, Step.MAIN_PULLED}) for pod in pods)
    if lost:
        found.append(f"of {pods_(lost)} the cluster no longer knows every time, such as that of a first run")
    again = sum(pod.barrier_runs > 1 for pod in pods)
    if again:
        found.append(f"the barrier of {pods_(again)} ran more than once: only its last run is known")
    if pods:
        found.append(WHOLE_SECONDS)
    return found


def absent_note(many: int, of: str) -> list[str]:
    """The note on pods that do not exist."""
    words = "is gone or was" if many == 1 else "are gone or were"
    return [f"{pods_(many)} of {of} {words} never made"] if many > 0 else []
