"""What is told of a group: its phase, its numbers and one reason, for its status, for Events and for a table (G5).

One builder for keepers and people: the table says what the status says. Messages carry no running time, so that they
stay the same while nothing happens.
"""

from collections.abc import Sequence

from jobset_gate.barrier.model import Value
from jobset_gate.objects import terminal_text
from jobset_gate.podgroups import event_model, reasons
from jobset_gate.podgroups import events as tellings
from jobset_gate.podgroups import phase as phases
from jobset_gate.podgroups.candidate import Admit, Hold
from jobset_gate.podgroups.event_model import EventContext, GroupEvent
from jobset_gate.podgroups.model import Format, PodGroupKey, PodGroupSource
from jobset_gate.podgroups.phase import MemberCounts, Phase
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot, MemberPod, RecordRef
from jobset_gate.podgroups.tally import count_members

_HUMAN_MANAGER = "kubectl"
"""Managers of this name are no controllers: somebody has mended something by hand."""


class GroupStatus(Value, frozen=True):
    """All that there is to say of one group at one moment."""

    key: PodGroupKey
    label: str
    formats: tuple[Format, ...]
    record_ref: RecordRef | None
    pod_group: PodGroupSource | None
    created: float
    """Of its PodGroup, else of its oldest member; its age is counted from there."""
    record: AdmissionRecord | None
    counts: MemberCounts
    phase: Phase
    reason: str
    message: str
    admitted: int
    """Members whose gates were removed in this generation."""
    occupied_by: str
    """UID of the one controller that made its members; "" if they have none, or several."""
    scheduling: bool
    """Opened, not satisfied, and the limit has not passed: every write now would take from the scheduler's time."""
    ungated: tuple[str, ...]
    """Pods that name the group and were bound without being held."""
    moved: tuple[str, ...]
    """Pods that name another group by now than the one they are held for."""
    managers: tuple[str, ...]
    """Who else writes the status of its PodGroup."""
    scene: EventContext
    """What all of this comes from."""

    @property
    def snapshot(self) -> GroupSnapshot:
        """The group as it was seen."""
        return self.scene.snapshot

    @property
    def events(self) -> tuple[GroupEvent, ...]:
        """What has happened, for Events."""
        return tellings.group_events(self.scene)


def group_status(
    seen: GroupSnapshot,
    now: float,
    why: Hold | GroupReason | Admit | None = None,
    blocked: str = "",
    doubts: Sequence[str] = (),
) -> GroupStatus:
    """What to tell of a group. `why`: what holds it up, by the outlook; `blocked`: what holds up its way back.

    `doubts` is what somebody should look at though it holds up nothing.
    """
    counts = count_members(seen, now)
    phase = phases.group_phase(counts)
    told = None if why is None or isinstance(why, Admit) else GroupReason(reason=why.reason, message=why.message)
    standing = reasons.status_reason(seen, counts, told, blocked, now)
    scene = event_model.event_context(seen, counts, standing, doubts)
    ungated, moved = (tuple(it.name for it in some) for some in (scene.ungated, scene.moved))
    record = seen.record
    return GroupStatus(
        key=seen.group.key,
        label=seen.label,
        formats=seen.group.formats,
        record_ref=seen.record_ref,
        pod_group=seen.group.pod_group,
        created=seen.created,
        record=record,
        counts=counts,
        phase=phase,
        reason=standing.reason,
        message=terminal_text.line(_with_notes(standing.message, ungated, moved)),
        admitted=sum(_opened(it, record) for it in seen.members),
        occupied_by=_occupied_by(seen),
        scheduling=_is_placing(record, counts),
        ungated=ungated,
        moved=moved,
        managers=tuple(it for it in seen.status_managers if not it.startswith(_HUMAN_MANAGER)),
        scene=scene,
    )


def _is_placing(record: AdmissionRecord | None, counts: MemberCounts) -> bool:
    open_ = record is not None and record.stage is AdmissionState.OPEN and record.satisfied is None
    return open_ and counts.bound < counts.minimum and not counts.deadline_passed


def _opened(member: MemberPod, record: AdmissionRecord | None) -> bool:
    return (
        record is not None
        and record.stage is not AdmissionState.CLOSED
        and not member.gated
        and member.generation == record.generation
    )


def _occupied_by(seen: GroupSnapshot) -> str:
    makers = {it.controller.uid if it.controller else "" for it in seen.members}
    return makers.pop() if len(makers) == 1 else ""


def _with_notes(message: str, ungated: tuple[str, ...], moved: tuple[str, ...]) -> str:
    if ungated:
        message += f"; Ungated: {reasons.pod_names(ungated)}"
    if moved:
        message += f"; say something else of their group by now, which is not followed: {reasons.pod_names(moved)}"
    return message
