"""gang_trace(timeline, verdict, decided): one start of a gang as the spans of a trace; another module sends them.

Ids are made from the generation: the same start always has the same ids.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from jobset_gate.barrier.model import Verdict, VerdictKind
from jobset_gate.timeline.model import Activity, PodTimeline, Step, Timeline
from jobset_gate.timeline.summary import step_summary

MAX_PODS: Final = 20
"""Pods with spans of their own, the slowest first: a gang may have thousands."""
MAX_LINKS: Final = 3
"""Links from the gang's span to the slowest pods'."""
_STAGES: Final = (Step.CREATED, Step.SCHEDULED, Step.PULLED, Step.STARTED, Step.RELEASED, Step.RUNNING)
_OURS: Final = "jobset_gate."

Attributes = Mapping[str, str | int | float]
_NONE: Final[Attributes] = MappingProxyType({})


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Times are seconds since the epoch; ids as in OpenTelemetry, 64 bits."""

    name: str
    span_id: int
    parent_id: int = 0
    """0: it is the root."""
    start: float
    end: float
    attributes: Attributes = _NONE
    events: tuple[tuple[str, float], ...] = ()
    """Names and times."""
    links: tuple[tuple[int, Attributes], ...] = ()
    """Ids of other spans of the trace."""
    error: str = ""
    """Why its status is Error; "" if it is not."""


class Trace(msgspec.Struct, frozen=True):
    """The root comes first."""

    trace_id: int
    """128 bits."""
    spans: tuple[Span, ...]


def gang_trace(timeline: Timeline, verdict: Verdict, decided: float, timeout: int | None = None) -> Trace:
    """The trace of what `verdict` decided at the time `decided`; `timeout`: seconds, None without one."""
    return _Builder(timeline, verdict, decided, timeout).trace()


class _Builder:
    def __init__(self, timeline: Timeline, verdict: Verdict, decided: float, timeout: int | None) -> None:
        self._timeline, self._verdict, self._decided, self._timeout = timeline, verdict, decided, timeout
        generation = verdict.generation
        self._seed = f"{generation.uid}/{generation.attempt}/{generation.epoch}"
        known = (timeline.origin, timeline.waiting_since, decided)
        self._start = min(it for it in known if it is not None)
        self._timed_out = verdict.kind is VerdictKind.TIMEOUT
        self._root = self._span_id("gang")
        self._slowest = sorted(timeline.pods, key=_slowness, reverse=True)[:MAX_PODS]

    def trace(self) -> Trace:
        children = [*self._stages(), *(span for pod in self._slowest for span in self._pod(pod))]
        root = Span(
            name="gang",
            span_id=self._root,
            start=self._start,
            end=max((it.end for it in children), default=self._decided),
            attributes=dict(self._gang_attributes()),
            links=tuple((self._span_id(it.uid), _pod_attributes(it)) for it in self._slowest[:MAX_LINKS]),
            error=self._verdict.message if self._timed_out else "",
        )
        return Trace(_hash(self._seed, 16), (root, *children))

    def _gang_attributes(self) -> Iterator[tuple[str, str | int | float]]:
        it, verdict = self._timeline, self._verdict
        yield "k8s.namespace.name", it.namespace
        if it.source is not None:
            yield f"{_OURS}{it.source.name}.name", it.name
            yield f"{_OURS}{it.source.name}.uid", verdict.generation.uid
        yield f"{_OURS}attempt", verdict.generation.attempt
        yield f"{_OURS}epoch", verdict.generation.epoch
        yield f"{_OURS}verdict", verdict.kind.value
        yield f"{_OURS}cause", verdict.cause
        yield f"{_OURS}message", verdict.message
        if self._timeout is not None:
            yield f"{_OURS}timeout_seconds", self._timeout
        yield f"{_OURS}pods.expected", it.expected
        yield f"{_OURS}pods.started", it.started
        yield f"{_OURS}pods.shown", len(self._slowest)
        skew = step_summary(it.pods, Step.RUNNING).spread
        if skew is not None:
            yield f"{_OURS}start_skew_seconds", skew

    def _stages(self) -> Iterator[Span]:
        """From the first pod that came so far as the stage before to the last pod that came through this one."""
        begin = self._start
        for step in _STAGES:
            if step is Step.RELEASED:
                yield self._decision()
                begin = self._decided
            found = step_summary(self._timeline.pods, step)
            if found.first is None or found.last is None:
                continue
            pending = max(self._timeline.expected, len(self._timeline.pods)) - found.known - found.lost
            end = max(begin, found.last)
            if pending:
                end = max(end, self._timeline.now if step in (Step.RELEASED, Step.RUNNING) else self._decided)
            numbers = {"reached": found.known, "pending": pending, "time_unknown": found.lost}
            yield self._child(step, begin, end, {f"{_OURS}pods.{name}": many for name, many in numbers.items()})
            begin = max(begin, found.first)

    def _decision(self) -> Span:
        """From the last pod's start for a release of all, or else from the first pod's, when the timeout began."""
        last = step_summary(self._timeline.pods, Step.STARTED)
        complete = not self._timed_out and last.known >= self._timeline.expected
        since = last.last if complete else self._timeline.waiting_since
        start = self._decided if since is None else min(since, self._decided)
        return self._child("decided", start, self._decided, {f"{_OURS}cause": self._verdict.cause})

    def _pod(self, pod: PodTimeline) -> Iterator[Span]:
        """The pod's span, and one for each activity up to its main containers' start."""
        activities = [it for it in pod.spans(self._timeline.now) if it.activity is not Activity.RUNNING]
        if not activities:
            return
        span_id = self._span_id(pod.uid)
        yield Span(
            name=f"pod {pod.slot}",
            span_id=span_id,
            parent_id=self._root,
            start=activities[0].start,
            end=activities[-1].end,
            attributes=_pod_attributes(pod),
            events=tuple(sorted(pod.times.items(), key=lambda it: it[1])),
            error=self._pod_error(pod),
        )
        for number, it in enumerate(activities):
            own = self._span_id(f"{pod.uid}/{number}")
            yield Span(name=it.activity, span_id=own, parent_id=span_id, start=it.start, end=it.end)

    def _pod_error(self, pod: PodTimeline) -> str:
        if pod.gave_up is not None:
            return "its barrier ended without a release"
        return "" if pod.reached(Step.STARTED) or not self._timed_out else "it had not started at the timeout"

    def _child(self, name: str, start: float, end: float, attributes: Attributes) -> Span:
        return Span(
            name=name, span_id=self._span_id(name), parent_id=self._root, start=start, end=end, attributes=attributes
        )

    def _span_id(self, name: str) -> int:
        return _hash(f"{self._seed}/{name}", 8)


def _slowness(pod: PodTimeline) -> tuple[Sequence[float], str]:
    """By its start, then by its main containers'; a pod that has not come so far is the slowest."""
    steps = (Step.STARTED, Step.RUNNING)
    late = [pod.times.get(step, float("-inf" if pod.reached(step) else "inf")) for step in steps]
    return late, pod.slot


def _pod_attributes(pod: PodTimeline) -> Attributes:
    found = {"k8s.pod.name": pod.name, "k8s.pod.uid": pod.uid, f"{_OURS}slot": pod.slot}
    return found | ({"k8s.node.name": pod.node} if pod.node else {})


def _hash(text: str, size: int) -> int:
    """Never 0, which OpenTelemetry takes for no id."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size]) or 1
