"""The words of a timeline: what each pod of a gang reached and when, with what is no longer known said as such.

Times are seconds since the epoch; those of statuses are whole seconds of whichever node or server wrote them.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec

from jobset_gate import names
from jobset_gate.barrier.model import Generation, Value
from jobset_gate.barrier.source import Source
from jobset_gate.objects.devices import Devices


class Step(StrEnum):
    """What a pod goes through, in this order."""

    CREATED = "created"
    OPENED = "opened"
    """Of a pod group's pods: our gate was removed."""
    SCHEDULED = "scheduled"
    """It has a node: it is bound."""
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


class Activity(StrEnum):
    """What a pod is at between two steps."""

    WAITING = "waiting for a node"
    PREPARING = "images and init"
    HELD = "held at the gate"
    STARTING = "starting"
    RUNNING = "running"
    UNKNOWN = "not known"


class StepSequence(Value, frozen=True):
    """What the pods of one kind of gang go through."""

    steps: tuple[Step, ...]
    transitions: tuple[tuple[Step, Activity], ...]
    """Steps that part two activities, with what begins with each; the pulls happen within one."""
    held: tuple[Step, Step]
    """From when to when a gate of ours holds them."""
    arrival: Step
    """Pods are ordered by this step."""
    arrival_text: str

    @property
    def transition_steps(self) -> tuple[Step, ...]:
        """Steps that part two activities."""
        return tuple(step for step, _ in self.transitions)

    @property
    def activities(self) -> tuple[Activity, ...]:
        """What there is to be seen of them, in order."""
        return (*(doing for _, doing in self.transitions), Activity.UNKNOWN)


BARRIER_STEPS = StepSequence(
    steps=tuple(step for step in Step if step is not Step.OPENED),
    transitions=(
        (Step.CREATED, Activity.WAITING),
        (Step.SCHEDULED, Activity.PREPARING),
        (Step.STARTED, Activity.HELD),
        (Step.RELEASED, Activity.STARTING),
        (Step.RUNNING, Activity.RUNNING),
    ),
    held=(Step.STARTED, Step.RELEASED),
    arrival=Step.STARTED,
    arrival_text="came to the gate",
)
"""Of a gang with a start barrier: its pods have nodes, and wait in the start barrier."""
PLACEMENT_STEPS = StepSequence(
    steps=(Step.CREATED, Step.OPENED, Step.SCHEDULED, Step.RUNNING),
    transitions=(
        (Step.CREATED, Activity.HELD),
        (Step.OPENED, Activity.WAITING),
        (Step.SCHEDULED, Activity.PREPARING),
        (Step.RUNNING, Activity.RUNNING),
    ),
    held=(Step.CREATED, Step.OPENED),
    arrival=Step.SCHEDULED,
    arrival_text="were bound",
)
"""Of a pod group: its pods are held before they get nodes."""


class ActivitySpan(Value, frozen=True):
    """What it was doing from when to when."""

    activity: Activity
    start: float
    end: float


class PodTimeline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pod's way."""

    name: str
    uid: str = ""
    replicated_job: str = ""
    job_index: int = 0
    index: int | None = None
    shown_index: str = ""
    """What people call that index, where they do not call it by its number."""
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
    path: StepSequence = BARRIER_STEPS

    @property
    def slot(self) -> str:
        """`workers-2/17`, or `17` in an only Job; a NonIndexed Job's pods have no number, so they go by their names."""
        if self.index is None:
            return self.name
        index = self.shown_index or str(self.index)
        return f"{self.replicated_job}-{self.job_index}/{index}" if self.replicated_job else index

    @property
    def unknown_steps(self) -> frozenset[Step]:
        """Steps that it has reached, and whose time is no longer known: a later one has been reached."""
        steps = self.path.steps
        last = max((number for number, step in enumerate(steps) if step in self.times or step in self.gone), default=-1)
        return frozenset(step for step in steps[: last + 1] if step not in self.times)

    @property
    def stopped_at(self) -> float | None:
        """When it stopped, as far as known."""
        return self.gave_up if self.gave_up is not None else self.ended

    def reached(self, step: Step) -> bool:
        """Whether or not anybody knows when."""
        return step in self.times or step in self.unknown_steps

    def held_seconds(self, now: float) -> float | None:
        """Seconds at the gate, up to now if it is still there; None if that is not known."""
        first, last = self.path.held
        if not self.reached(first):
            return 0.0
        start, end = self.times.get(first), self.times.get(last, self.gave_up)
        if start is None or (end is None and (self.reached(last) or not self.alive)):
            return None
        return max(0.0, (now if end is None else end) - start)

    def spans(self, until: float) -> tuple[ActivitySpan, ...]:
        """What it was doing from its creation up to `until` or to its end; never backwards, whatever clocks say."""
        found: list[ActivitySpan] = []
        end = self.stopped_at
        if end is None:  # of one that is gone, nobody knows how long it went on
            end = until if self.alive else max(self.times.values(), default=until)
        parts, lost = self.path.transition_steps, self.unknown_steps
        for (step, doing), next_step in zip(self.path.transitions, (*parts[1:], None), strict=True):
            if step not in self.times:
                continue
            later = (self.times[it] for it in parts[parts.index(step) + 1 :] if it in self.times)
            start = max(self.times[step], found[-1].end if found else self.times[step])
            activity = Activity.UNKNOWN if next_step in lost else doing
            found.append(ActivitySpan(activity=activity, start=start, end=max(start, next(later, end))))
        return tuple(found)


class Placement(Value, frozen=True):
    """A pod group as a whole: its present generation."""

    generation: int = 0
    """0: it was never opened."""
    minimum: int = 0
    gathered: float | None = None
    """When its minimum of pods existed."""
    satisfied: float | None = None
    """When its minimum was bound."""
    working: float | None = None
    """When its minimum ran: before that those that have nodes can do nothing."""
    works: bool = False
    """It has come so far, whether or not anybody knows when."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """A gang's present attempt."""

    namespace: str
    name: str
    attempt: int
    now: float
    source: Source | None = None
    """None: it is a pod group."""
    created: float | None = None
    waiting_since: float | None = None
    """The gang's clock for its timeout."""
    verdict: str = ""
    """AllPodsStarted, Bypassed, TimedOut or IndexFailed; "" while nothing is decided, or nobody may say."""
    opened: float | None = None
    """When the gate was opened, as far as known."""
    timed_out: float | None = None
    """When its time was up, if it timed out and that is known."""
    decision: str = ""
    """What the verdict said of a gang whose pods may be gone by now: one that timed out or has ended."""
    counted: int | None = None
    """How many had started by that."""
    expected: int = 0
    finished: bool = False
    pods: tuple[PodTimeline, ...] = ()
    replacements: tuple[PodTimeline, ...] = ()
    """Made when the gate was open already: they say nothing about the start."""
    notes: tuple[str, ...] = ()
    path: StepSequence = BARRIER_STEPS
    placing: Placement | None = None

    @property
    def kind(self) -> str:
        """Of the object that the gang is named after."""
        return names.POD_GROUP if self.source is None else self.source.kind

    @property
    def started(self) -> int:
        """Pods that have come to the gate; when their workload ends they go, so the verdict's count stays."""
        seen = sum(pod.reached(Step.STARTED) for pod in (*self.pods, *self.replacements))
        return seen if self.counted is None else self.counted

    @property
    def origin(self) -> float | None:
        """Where it begins: with its first pod; None without any."""
        return min((moment for pod in self.pods for moment in pod.times.values()), default=None)

    @property
    def until(self) -> float:
        """Where it ends: a moment after the last thing of note, or now while something is still to come."""
        if any(pod.alive and pod.stopped_at is None and not pod.reached(Step.RUNNING) for pod in self.pods):
            return self.now
        moments = [moment for pod in self.pods for moment in (*pod.times.values(), pod.gave_up) if moment is not None]
        if not moments:
            return self.now
        last = max(moments)
        return min(max(self.now, last), last + max(2.0, (last - min(moments)) / 12))
