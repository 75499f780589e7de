"""The words of a timeline: what each pod of a gang reached and when, with what is no longer known said as such.

Times are seconds since the epoch; those of statuses are whole seconds of whichever node or server wrote them.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec

from jobset_gate.devices import Devices
from jobset_gate.model import Generation, Word


class Step(StrEnum):
    """What a pod goes through, in this order."""

    CREATED = "created"
    SCHEDULED = "scheduled"
    PULLED = "pulled"
    """The barrier's image is on the node; earlier init containers are done."""
    STARTED = "started"
    """The barrier runs: the pod counts."""
    RELEASED = "released"
    """The barrier has let it through."""
    MAIN_PULLED = "mainPulled"
    """The images of all main containers are on the node."""
    RUNNING = "running"
    """The first main container runs."""


class Doing(StrEnum):
    """What a pod is at between two steps."""

    WAITING = "waiting for a node"
    PREPARING = "images and init"
    HELD = "held at the gate"
    STARTING = "starting"
    RUNNING = "running"
    UNKNOWN = "not known"


PATH = (Step.CREATED, Step.SCHEDULED, Step.STARTED, Step.RELEASED, Step.RUNNING)
"""Steps that part two doings; the pulls happen within one."""
AFTER = dict(zip(PATH, (Doing.WAITING, Doing.PREPARING, Doing.HELD, Doing.STARTING, Doing.RUNNING), strict=True))
"""What begins with each."""


class Span(Word, frozen=True):
    """What it was doing from when to when."""

    doing: Doing
    start: float
    end: float


class PodTimes(msgspec.Struct, frozen=True, kw_only=True):
    """One pod's way."""

    name: str
    uid: str = ""
    replicated_job: str = ""
    job_index: int = 0
    index: int | None = None
    node: str = ""
    phase: str = ""
    alive: bool = True
    """Neither failed nor on its way out."""
    times: Mapping[Step, float] = MappingProxyType({})
    gone: frozenset[Step] = frozenset()
    """Steps that it has surely reached though nobody says when any more, as far as its status tells."""
    gave_up: float | None = None
    """When its barrier ended without letting it through."""
    ended: float | None = None
    """When the last of its main containers ended."""
    barrier_runs: int = 1
    generation: Generation = Generation("", 0, 0)
    devices: Devices = ()

    @property
    def slot(self) -> str:
        """`workers-2/17`; a NonIndexed Job's pods have no number, so they go by their names."""
        return self.name if self.index is None else f"{self.replicated_job}-{self.job_index}/{self.index}"

    @property
    def lost(self) -> frozenset[Step]:
        """Steps that it has reached, and of which no time is known any more: a later one has been reached."""
        last = max((number for number, step in enumerate(Step) if step in self.times or step in self.gone), default=-1)
        return frozenset(step for number, step in enumerate(Step) if number <= last and step not in self.times)

    @property
    def over(self) -> float | None:
        """When it stopped, as far as known."""
        return self.gave_up if self.gave_up is not None else self.ended

    def reached(self, step: Step) -> bool:
        """Whether or not anybody knows when."""
        return step in self.times or step in self.lost

    def held(self, now: float) -> float | None:
        """Seconds at the gate, up to now if it is still there; None if that is not known."""
        if not self.reached(Step.STARTED):
            return 0.0
        start, end = self.times.get(Step.STARTED), self.times.get(Step.RELEASED, self.gave_up)
        if start is None or (end is None and (self.reached(Step.RELEASED) or not self.alive)):
            return None
        return max(0.0, (now if end is None else end) - start)

    def spans(self, until: float) -> tuple[Span, ...]:
        """What it was doing from its creation up to `until` or to its end; never backwards, whatever clocks say."""
        lost = self.lost
        found: list[Span] = []
        for number, step in enumerate(PATH):
            if step not in self.times:
                continue
            later = [it for it in PATH[number + 1 :] if it in self.times]
            end = self.times[later[0]] if later else self._end(until)
            sure = number + 1 == len(PATH) or PATH[number + 1] not in lost
            start = max(self.times[step], found[-1].end if found else self.times[step])
            found.append(Span(doing=AFTER[step] if sure else Doing.UNKNOWN, start=start, end=max(start, end)))
        return tuple(found)

    def _end(self, until: float) -> float:
        if self.over is not None:
            return self.over
        # Of one that is gone, nobody knows how long it went on.
        return until if self.alive else max(self.times.values())


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """A gang's present attempt."""

    namespace: str
    name: str
    attempt: int
    now: float
    created: float | None = None
    """Of the JobSet."""
    waiting_since: float | None = None
    """The gang's clock for its timeout."""
    verdict: str = ""
    """AllPodsStarted, Bypassed or TimedOut; "" while nothing is decided, or nobody may say."""
    opened: float | None = None
    """When the gate was opened, as far as known."""
    expected: int = 0
    finished: bool = False
    pods: tuple[PodTimes, ...] = ()
    replacements: tuple[PodTimes, ...] = ()
    """Made when the gate was open already: they say nothing about the start."""
    notes: tuple[str, ...] = ()
    """What one has to know to read it right."""

    @property
    def origin(self) -> float | None:
        """Where it begins: with its first pod; None without any."""
        return min((moment for pod in self.pods for moment in pod.times.values()), default=None)

    @property
    def until(self) -> float:
        """Where it ends: a moment after the last thing of note, or now while something is still to come."""
        if any(pod.alive and pod.over is None and not pod.reached(Step.RUNNING) for pod in self.pods):
            return self.now
        moments = [moment for pod in self.pods for moment in (*pod.times.values(), pod.gave_up) if moment is not None]
        if not moments:
            return self.now
        last = max(moments)
        return min(max(self.now, last), last + max(2.0, (last - min(moments)) / 12))
