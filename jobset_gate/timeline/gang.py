"""The timeline of a gang's present attempt or a pod group's generation, from what the cluster still knows of it."""

from collections.abc import Iterable, Sequence

import msgspec

from jobset_gate import names
from jobset_gate.barrier import messages
from jobset_gate.barrier.model import ConfigMapSeen, Generation, Verdict, VerdictKind, WorkloadSeen
from jobset_gate.explain.text import format_pod_count as pods_
from jobset_gate.objects import devices
from jobset_gate.podgroups import generation
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import MemberPod
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.timeline.model import PLACEMENT_STEPS, Placement, PodTimeline, Step, Timeline

_WHOLE_SECONDS = (
    "the cluster keeps these times in whole seconds, by the clocks of its nodes: differences of 1s mean little"
)
_LOST_PULLS = "the times of image pulls come from Events, which live an hour: of some pods it is not known"
_THOUSANDTHS = 1000
_OTHERS = "pods"
"""What those are called that no controller has made."""


def gang_timeline(
    workload: WorkloadSeen,
    gate: ConfigMapSeen | None,
    pods: Iterable[PodTimeline],
    now: float,
    notes: Sequence[str] = (),
) -> Timeline:
    """Pods of earlier attempts, and those that others have replaced, are left out; the notes say so."""
    turn = {target.name: number for number, target in enumerate(workload.targets)}
    ours = [pod for pod in pods if pod.replicated_job in turn]
    mine = [pod for pod in ours if (pod.generation.uid, pod.generation.attempt) == (workload.uid, workload.attempt)]
    kept = sorted(_slots(mine), key=lambda it: (turn[it.replicated_job], it.job_index, it.index or 0, it.name))
    kept = [msgspec.structs.replace(it, devices=workload.targets[turn[it.replicated_job]].devices) for it in kept]
    verdict = _verdict(workload, gate, kept)
    opened = _opened(workload, gate, verdict, kept)
    first, late = _parted(kept, opened)
    clock = gate.waiting_since if gate is not None else None
    since = clock.at if clock is not None and _present(workload, kept, clock.generation) else None
    # Without the ConfigMap: what the condition says, if it is about this attempt.
    reason = workload.condition.reason if workload.condition is not None and opened is not None else ""
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
        verdict=verdict.cause if verdict is not None else reason,
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


# --- What one has to know --------------------------------------------------------------------------------------------


def _notes(made: Timeline, *, replaced: int) -> list[str]:
    pods, late = (*made.pods, *made.replacements), len(made.replacements)
    restart = "restart " if made.source is not None and made.source.restarts else ""
    pulls = {Step.PULLED, Step.MAIN_PULLED}
    lost = sum(bool(pod.unknown_steps - pulls) for pod in pods)
    again = sum(pod.barrier_runs > 1 for pod in pods)
    notes = (
        (made.attempt, f"this is {restart}attempt {made.attempt}; the pods of earlier ones are gone and not shown"),
        (replaced, f"not shown: {pods_(replaced)}, failed or replaced by others"),
        (late, f"{pods_(late)} made after the gate was opened, as replacements: not in the skew, nor in pictures"),
        _absent_note(made.expected - len(pods), str(made.expected)),
        (any(pulls & pod.unknown_steps for pod in pods), _LOST_PULLS),
        (lost, f"of {pods_(lost)} the cluster no longer knows every time, such as that of a first run"),
        (again, f"the barrier of {pods_(again)} ran more than once: only its last run is known"),
        (pods, _WHOLE_SECONDS),
    )
    return [text for holds, text in notes if holds]


def _absent_note(many: int, of: str) -> tuple[bool, str]:
    """The note on pods that do not exist, and whether there are such."""
    words = "is gone or was" if many == 1 else "are gone or were"
    return many > 0, f"{pods_(many)} of {of} {words} never made"


# --- A pod group -----------------------------------------------------------------------------------------------------


def pod_group_timeline(
    report: GroupStatus, pods: Iterable[PodTimeline], now: float, notes: Sequence[str] = ()
) -> Timeline:
    """`pods` as `decode_pod` has them. Those of earlier generations are left out; the notes say so."""
    record = report.record if report.record is not None and report.record.stage is not AdmissionState.CLOSED else None
    members = {it.uid: it for it in report.snapshot.members}
    known = [(members[pod.uid], pod) for pod in pods if pod.uid in members]
    present = None if record is None else record.generation
    ours = [(it, pod) for it, pod in known if it.gated or it.ungated or present in (None, it.generation)]
    ways = sorted((_way(it, pod, now) for it, pod in ours), key=lambda it: (it.replicated_job, it.name))
    first = tuple(it for it in ways if record is None or it.times.get(Step.CREATED, 0.0) <= _newest(record))
    first = first or tuple(ways)  # all were created again: there is nothing else to show
    made = Timeline(
        namespace=report.key.namespace,
        name=report.key.name or "<none>",
        attempt=0,
        now=now,
        created=report.created or None,
        verdict="" if record is None else record.how.value,
        opened=None if record is None or not record.at else min(record.at, now),
        expected=max(report.counts.minimum, len(first)),
        pods=first,
        replacements=tuple(it for it in ways if it not in first),
        path=PLACEMENT_STEPS,
        placing=_placing(report, record, first),
    )
    return msgspec.structs.replace(made, notes=(*_group_notes(made, report, left_out=len(known) - len(ours)), *notes))


def _newest(record: AdmissionRecord) -> float:
    """Pods made later were not among those that it was opened for."""
    return record.newest or record.at


def _way(member: MemberPod, pod: PodTimeline, now: float) -> PodTimeline:
    """A member's way: its status tells when it was bound and ran, our annotation when its gate was removed."""
    times = {step: at for step, at in pod.times.items() if step in PLACEMENT_STEPS.steps}
    gone = pod.gone & {*PLACEMENT_STEPS.steps}
    if not member.gated and member.generation:
        gone |= {Step.OPENED}
    if not member.gated and (opened := generation.ungated_at(member, now)):
        times[Step.OPENED] = opened
    return msgspec.structs.replace(
        pod,
        replicated_job=member.jobset or (member.controller.name if member.controller else _OTHERS),
        job_index=0,
        index=None,
        times=times,
        gone=gone,
        gave_up=None,
        barrier_runs=1,
        devices=_devices(member),
        path=PLACEMENT_STEPS,
    )


def _devices(member: MemberPod) -> devices.Devices:
    asked = member.shape.requests.items()
    return tuple(sorted((name, many // _THOUSANDTHS) for name, many in asked if devices.is_device(name)))


def _placing(report: GroupStatus, record: AdmissionRecord | None, pods: Sequence[PodTimeline]) -> Placement:
    minimum = report.counts.minimum
    ran = [pod for pod in pods if pod.reached(Step.RUNNING)]
    lost = any(Step.RUNNING not in pod.times for pod in ran)
    gathered = _nth([pod.times[Step.CREATED] for pod in pods if Step.CREATED in pod.times], minimum)
    late = gathered is not None and record is not None and gathered > _newest(record)
    return Placement(
        generation=0 if record is None else record.generation,
        minimum=minimum,
        gathered=None if late else gathered,
        satisfied=None if record is None else record.satisfied,
        # One whose time is lost may have been among the first: then nobody knows when they were enough.
        working=_nth([pod.times[Step.RUNNING] for pod in ran], minimum) if not lost else None,
        works=0 < minimum <= len(ran),
    )


def _nth(moments: Iterable[float], number: int) -> float | None:
    """When so many had come."""
    found = sorted(moments)
    return found[number - 1] if 0 < number <= len(found) else None


def _group_notes(made: Timeline, report: GroupStatus, *, left_out: int) -> list[str]:
    pods, minimum, ungated = (*made.pods, *made.replacements), report.counts.minimum, len(report.ungated)
    late, lost = len(made.replacements), sum(bool(pod.unknown_steps) for pod in pods)
    back, why = (report.record.rolled_back, report.record.why) if report.record is not None else (0, "")
    times = "once" if back == 1 else f"{back} times"
    notes = (
        (back, f"it was taken back {times}: {why}; what was before is not shown"),
        (left_out, f"not shown: {pods_(left_out)} of an earlier generation"),
        (late, f"{pods_(late)} made after it was opened: not in the skew, nor in pictures"),
        _absent_note(minimum - len(pods), f"its minimum of {minimum}"),
        (ungated, f"{pods_(ungated)} never held by a gate of ours: opened is not known of those"),
        (lost, f"of {pods_(lost)} the cluster no longer knows every time"),
        (made.pods, _WHOLE_SECONDS),
    )
    return [text for holds, text in notes if holds]
