"""make(report, pods, now): the timeline of a pod group's present generation, from what the cluster still knows."""

from collections.abc import Iterable, Sequence

import msgspec

from jobset_gate.explain.text import format_pod_count as pods_
from jobset_gate.objects import devices
from jobset_gate.podgroups import generation
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import MemberPod
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.timeline.gang import WHOLE_SECONDS, absent_note
from jobset_gate.timeline.model import PLACEMENT_STEPS, Placement, PodTimeline, Step, Timeline

_THOUSANDTHS = 1000
_OTHERS = "pods"
"""What those are called that no controller has made."""


def pod_group_timeline(
    report: GroupStatus, pods: Iterable[PodTimeline], now: float, notes: Sequence[str] = ()
) -> Timeline:
    """`pods` as `timeline_read.pod` has them. Those of earlier generations are left out; the notes say so."""
    record = report.record if report.record is not None and report.record.stage is not AdmissionState.CLOSED else None
    members = {it.uid: it for it in report.snapshot.members}
    known = [(members[pod.uid], pod) for pod in pods if pod.uid in members]
    ours = [(it, pod) for it, pod in known if it.gated or it.ungated or record is None or _is_of(it, record)]
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
    return msgspec.structs.replace(made, notes=(*_notes(made, report, left_out=len(known) - len(ours)), *notes))


def _is_of(member: MemberPod, record: AdmissionRecord) -> bool:
    return member.generation == record.generation


def _newest(record: AdmissionRecord) -> float:
    """Pods made later were not among those that it was opened for."""
    return record.newest or record.at


def _way(member: MemberPod, pod: PodTimeline, now: float) -> PodTimeline:
    """A member's way: its status tells when it was bound and ran, our annotation when its gate was removed."""
    opened = generation.ungated_at(member, now)
    times = {step: at for step, at in pod.times.items() if step in PLACEMENT_STEPS.steps}
    if opened and not member.gated:
        times[Step.OPENED] = opened
    gone = set(pod.gone) & set(PLACEMENT_STEPS.steps) | (
        {Step.OPENED} if member.generation and not member.gated else set()
    )
    return msgspec.structs.replace(
        pod,
        replicated_job=member.jobset or (member.controller.name if member.controller else _OTHERS),
        job_index=0,
        index=None,
        times=times,
        gone=frozenset(gone),
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
    gathered = _nth([pod.times[Step.CREATED] for pod in pods if Step.CREATED in pod.times], minimum)
    late = gathered is not None and record is not None and gathered > _newest(record)
    return Placement(
        generation=0 if record is None else record.generation,
        minimum=minimum,
        gathered=None if late else gathered,
        satisfied=None if record is None else record.satisfied,
        # One whose time is lost may have been among the first: then nobody knows when they were enough.
        working=_nth([pod.times[Step.RUNNING] for pod in ran], minimum) if not _lost(ran) else None,
        works=0 < minimum <= len(ran),
    )


def _lost(ran: Iterable[PodTimeline]) -> bool:
    return any(Step.RUNNING not in pod.times for pod in ran)


def _nth(moments: Iterable[float], number: int) -> float | None:
    """When so many had come."""
    found = sorted(moments)
    return found[number - 1] if 0 < number <= len(found) else None


def _notes(made: Timeline, report: GroupStatus, *, left_out: int) -> list[str]:
    found = []
    record = report.record
    if record is not None and record.rolled_back:
        times = "once" if record.rolled_back == 1 else f"{record.rolled_back} times"
        found.append(f"it was taken back {times}: {record.why}; what was before is not shown")
    if left_out:
        found.append(f"not shown: {pods_(left_out)} of an earlier generation")
    if made.replacements:
        found.append(f"{pods_(len(made.replacements))} made after it was opened: not in the skew, nor in pictures")
    pods, minimum = (*made.pods, *made.replacements), report.counts.minimum
    found += absent_note(minimum - len(pods), f"its minimum of {minimum}")
    if report.ungated:
        found.append(f"{pods_(len(report.ungated))} never held by a gate of ours: opened is not known of those")
    lost = sum(bool(pod.unknown_steps) for pod in pods)
    if lost:
        found.append(f"of {pods_(lost)} the cluster no longer knows every time")
    if made.pods:
        found.append(WHOLE_SECONDS)
    return found
