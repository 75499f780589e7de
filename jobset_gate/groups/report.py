"""What is told of a group: its phase, its numbers and one reason, for its status, for Events and for a table (G5).

One builder for keepers and people: the table says what the status says. Messages carry no running time, so that they
stay the same while nothing happens.
"""

from collections.abc import Sequence

from jobset_gate import terminal_text
from jobset_gate.groups import fact, phases, reasons, tellings
from jobset_gate.groups.candidates import Hold, Open
from jobset_gate.groups.fact import Fact, Scene
from jobset_gate.groups.model import Key, PodGroupSeen, Way
from jobset_gate.groups.phases import Counts, Phase
from jobset_gate.groups.record import Record, Stage
from jobset_gate.groups.seen import GroupSeen, Home, MemberSeen
from jobset_gate.groups.standing import Standing
from jobset_gate.groups.tally import tally
from jobset_gate.model import Word

_PEOPLE = "kubectl"
"""Managers of this name are no controllers: somebody has mended something by hand."""


class Report(Word, frozen=True):
    """All that there is to say of one group at one moment."""

    key: Key
    label: str
    ways: tuple[Way, ...]
    home: Home | None
    pod_group: PodGroupSeen | None
    created: float
    """Of its PodGroup, else of its oldest member; its age is counted from there."""
    record: Record | None
    counts: Counts
    phase: Phase
    reason: str
    message: str
    admitted: int
    """Members whose gates were removed in this generation."""
    occupied_by: str
    """UID of the one controller that made its members; "" if they have none, or several."""
    placing: bool
    """Opened, not satisfied, and the limit has not passed: every write now would take from the scheduler's time."""
    ungated: tuple[str, ...]
    """Pods that name the group and were bound without being held."""
    moved: tuple[str, ...]
    """Pods that name another group by now than the one they are held for."""
    managers: tuple[str, ...]
    """Who else writes the status of its PodGroup."""
    scene: Scene
    """What all of this comes from."""

    @property
    def seen(self) -> GroupSeen:
        """The group as it was seen."""
        return self.scene.seen

    @property
    def facts(self) -> tuple[Fact, ...]:
        """What has happened, for Events."""
        return tellings.facts(self.scene)


def report(
    seen: GroupSeen,
    now: float,
    why: Hold | Standing | Open | None = None,
    blocked: str = "",
    doubts: Sequence[str] = (),
) -> Report:
    """What to tell of a group. `why`: what holds it up, by the outlook; `blocked`: what holds up its way back.

    `doubts` is what somebody should look at though it holds up nothing.
    """
    counts = tally(seen, now)
    phase = phases.phase(counts)
    told = None if why is None or isinstance(why, Open) else Standing(reason=why.reason, message=why.message)
    standing = reasons.reason(seen, counts, told, blocked, now)
    scene = fact.scene(seen, counts, standing, doubts)
    ungated, moved = (tuple(it.name for it in some) for some in (scene.ungated, scene.moved))
    record = seen.record
    return Report(
        key=seen.group.key,
        label=seen.label,
        ways=seen.group.ways,
        home=seen.home,
        pod_group=seen.group.pod_group,
        created=seen.created,
        record=record,
        counts=counts,
        phase=phase,
        reason=standing.reason,
        message=terminal_text.line(_with_notes(standing.message, ungated, moved)),
        admitted=sum(_opened(it, record) for it in seen.members),
        occupied_by=_occupier(seen),
        placing=_is_placing(record, counts),
        ungated=ungated,
        moved=moved,
        managers=tuple(it for it in seen.status_managers if not it.startswith(_PEOPLE)),
        scene=scene,
    )


def _is_placing(record: Record | None, counts: Counts) -> bool:
    open_ = record is not None and record.stage is Stage.OPEN and record.satisfied is None
    return open_ and counts.bound < counts.minimum and not counts.late


def _opened(member: MemberSeen, record: Record | None) -> bool:
    return (
        record is not None
        and record.stage is not Stage.CLOSED
        and not member.gated
        and member.generation == record.generation
    )


def _occupier(seen: GroupSeen) -> str:
    makers = {it.maker.uid if it.maker else "" for it in seen.members}
    return makers.pop() if len(makers) == 1 else ""


def _with_notes(message: str, ungated: tuple[str, ...], moved: tuple[str, ...]) -> str:
    if ungated:
        message += f"; Ungated: {reasons.named(ungated)}"
    if moved:
        message += f"; say something else of their group by now, which is not followed: {reasons.named(moved)}"
    return message
