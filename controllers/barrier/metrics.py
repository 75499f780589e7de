"""Metrics of gangs by source (A9): how long they wait, and why. Base units; no label names a pod or a workload.

Differences between two clocks are cut at zero: a node's clock may be ahead.
"""

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controllers.barrier import idle_accelerators
from jobset_gate import names
from jobset_gate.barrier import count
from jobset_gate.barrier.decision import Blocked, Decide, Wait
from jobset_gate.barrier.model import GangKey, GangSnapshot, Generation, PendingReason, PodSeen, Verdict, VerdictKind

_LONG = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400)
_SHORT = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 90, 120)

# Series that exist from the start, so that rate() does not miss the first increment.
VERDICTS = (
    (VerdictKind.RELEASE, names.REASON_STARTED),
    (VerdictKind.RELEASE, names.REASON_BYPASSED),
    (VerdictKind.RELEASE, names.REASON_TIMED_OUT),
    (VerdictKind.TIMEOUT, names.REASON_TIMED_OUT),
    (VerdictKind.RELEASE, names.REASON_GATE_MISSING),
    (VerdictKind.RELEASE, names.REASON_INDEX_FAILED),
    (VerdictKind.TIMEOUT, names.REASON_INDEX_FAILED),
)
PATCHED = ("ok", "gone", "error")
STREAMED = ("told", "lost", "unknown", "forbidden", "malformed", "stopped", "too_many")

BLOCKED = (names.REASON_GATE_MISSING, names.REASON_CONFIG_MAP_CONFLICT)

NO_SOURCE = ""
"""Of a request that names no gang; the same as no label."""


@dataclass(frozen=True, slots=True)
class _WaitingGang:
    started: int
    missing: Tally[PendingReason]
    since: float | None
    """Start of the first pod."""


class GangMetrics:
    """Gauges are counted at each scrape, of what the last passes found. `clock`: seconds since the epoch; `sources`:
    those that are managed.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        clock: Callable[[], float] = time.time,
        sources: Iterable[str] = (GangKey("", "").source,),
    ) -> None:
        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"jobset_gate_{name}", text, ("source",), buckets=buckets, registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"jobset_gate_{name}", text, ("source", *labels), registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"jobset_gate_{name}", text, ("source", *labels), registry=registry)

        self.time_to_release = histogram(
            "time_to_release_seconds", "From a gang's first started pod to its release.", _LONG
        )
        self.last_start_to_release = histogram(
            "last_start_to_release_seconds",
            "From the last pod's start, by its announcement or its node's clock in whole seconds, to the release: "
            "what jobset-gate itself adds.",
            _SHORT,
        )
        self.release_to_last_main = histogram(
            "release_to_last_main_start_seconds",
            "From the release to the last main container's start, by its node's clock in whole seconds.",
            _SHORT,
        )
        self.skew = histogram(
            "start_skew_seconds",
            "From a gang's first to its last main container's start: the skew with the gate.",
            _SHORT,
        )
        self.pod_skew = histogram(
            "pod_start_skew_seconds",
            "From a gang's first to its last pod's start, when it is released: the skew without a gate.",
            _LONG,
        )
        self.decisions = counter(
            "decisions_total",
            "Verdicts taken. A release for TimedOut or IndexFailed is on-timeout Release.",
            "kind",
            "cause",
        )
        self._patches = counter("annotation_patches_total", "Pods patched with a verdict.", "outcome")
        self._stream_requests = counter(
            "stream_requests_total", "Requests on the gate stream, by how they ended.", "outcome"
        )
        self._stream_open = gauge("stream_open", "Requests held open on the gate stream.")
        self._gangs_shown = gauge("waiting_gangs", "Gangs whose gate is closed.")
        self._pods_shown = gauge("waiting_pods", "Started pods held at a closed gate.")
        self._missing_shown = gauge("missing_pods", "Pods that closed gates wait for, by reason.", "reason")
        self._blocked_shown = gauge("blocked_gangs", "Gangs without a gate that works, by reason.", "reason")
        self._longest_shown = gauge(
            "longest_wait_seconds", "Since the first pod started of the gang that waits longest; 0 if none waits."
        )
        self._idle = idle_accelerators.IdleAccelerators(clock)
        registry.register(self._idle)
        self._clock = clock
        self._released_at: dict[GangKey, tuple[Generation, float]] = {}
        self._gangs: dict[GangKey, _WaitingGang] = {}
        self._blocked: dict[GangKey, str] = {}
        self._sources = tuple(sources)
        for source in self._sources:
            self._init_series(source)

    def _init_series(self, source: str) -> None:
        for it in (
            self.time_to_release,
            self.last_start_to_release,
            self.release_to_last_main,
            self.skew,
            self.pod_skew,
            self._stream_open,
        ):
            it.labels(source)
        for kind, cause in VERDICTS:
            self.decisions.labels(source, kind.value, cause)
        for outcome in PATCHED:
            self._patches.labels(source, outcome)
        for outcome in STREAMED:
            self._stream_requests.labels(source, outcome)
        self._longest_shown.labels(source).set_function(lambda: self._longest(source))
        self._gangs_shown.labels(source).set_function(lambda: len(self._waiting(source)))
        self._pods_shown.labels(source).set_function(lambda: sum(it.started for it in self._waiting(source)))
        for why in PendingReason:
            self._missing_shown.labels(source, why.value).set_function(partial(self._count_missing, source, why))
        for reason in BLOCKED:
            self._blocked_shown.labels(source, reason).set_function(partial(self._count_blocked, source, reason))

    def on_waiting(self, key: GangKey, seen: GangSnapshot, decision: Wait) -> None:
        """A pass found the barrier closed."""
        self._blocked.pop(key, None)
        missing: Tally[PendingReason] = Tally()
        for it in decision.missing:
            missing[PendingReason(it.reason)] += it.count
        self._gangs[key] = _WaitingGang(decision.started, missing, decision.clock.at if decision.clock else None)
        self._idle.set_held(key, idle_accelerators.held_devices(seen))

    def on_blocked(self, key: GangKey, decision: Blocked) -> None:
        """A pass found no working barrier."""
        self.clear_gang(key)
        self._blocked[key] = decision.condition.reason

    def clear_gang(self, key: GangKey) -> None:
        """No barrier holds the gang."""
        self._idle.set_held(key, {})
        self._blocked.pop(key, None)
        self._gangs.pop(key, None)

    def on_decided(self, key: GangKey, seen: GangSnapshot, decision: Decide, now: float) -> None:
        """This process wrote a verdict at `now`."""
        verdict = decision.verdict
        self.decisions.labels(key.source, verdict.kind.value, verdict.cause).inc()
        self.clear_gang(key)
        if verdict.kind is not VerdictKind.RELEASE:
            return
        if decision.clock is not None:
            self.time_to_release.labels(key.source).observe(max(0.0, now - decision.clock.at))
        tally = count.count_gang(seen)
        first = min((it for it in (tally.first_start, tally.first_announced) if it is not None), default=None)
        if first is not None and tally.last_start is not None:
            self.last_start_to_release.labels(key.source).observe(max(0.0, now - tally.last_start))
            self.pod_skew.labels(key.source).observe(tally.last_start - first)
        self._released_at[key] = (verdict.generation, now)

    def on_enforced(self, key: GangKey, seen: GangSnapshot, verdict: Verdict) -> None:
        """A pass found a durable verdict: no pod is held, and all main containers may have started."""
        self.clear_gang(key)
        released = self._released_at.get(key)
        if released is None or released[0] != verdict.generation:
            return  # written by another process, at an unknown time
        starts = main_starts(seen)
        if starts is None:
            return
        self.release_to_last_main.labels(key.source).observe(max(0.0, max(starts) - released[1]))
        self.skew.labels(key.source).observe(max(starts) - min(starts))
        del self._released_at[key]

    def on_patched(self, source: str, outcome: str) -> None:
        """A pod was patched; hook of VerdictPatcher."""
        self._patches.labels(source, outcome).inc()

    def set_open_requests(self, many: Callable[[str], int]) -> None:
        """Function that returns the number of open requests of a source's gangs."""
        for source in self._sources:
            self._stream_open.labels(source).set_function(partial(many, source))

    def on_stream_request(self, source: str, outcome: str) -> None:
        """A request on the gate stream has ended; hook of StreamServer."""
        self._stream_requests.labels(source if source in self._sources else NO_SOURCE, outcome).inc()

    def forget_gang(self, key: GangKey) -> None:
        """The gang is gone, finished, or managed by another controller."""
        self.clear_gang(key)
        self._released_at.pop(key, None)

    def _waiting(self, source: str) -> list[_WaitingGang]:
        return [gang for key, gang in self._gangs.items() if key.source == source]

    def _count_missing(self, source: str, why: PendingReason) -> int:
        return sum(gang.missing[why] for gang in self._waiting(source))

    def _count_blocked(self, source: str, reason: str) -> int:
        return sum(key.source == source and why == reason for key, why in self._blocked.items())

    def _longest(self, source: str) -> float:
        since = min((it.since for it in self._waiting(source) if it.since is not None), default=None)
        return 0.0 if since is None else max(0.0, self._clock() - since)


def main_starts(seen: GangSnapshot) -> list[float] | None:
    """Start of each pod's main containers; None while one has not started, or without pods."""
    pods: list[PodSeen] = [pod for pod in count.gang_pods(seen) if pod.alive]
    starts = [pod.main_since for pod in pods if pod.main_since is not None]
    return starts if starts and len(starts) == len(pods) else None
