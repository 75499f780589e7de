"""The metrics of gangs (A9): how long they wait and why. Base units; never a name of a pod or JobSet as a label.

Differences between two clocks are cut at zero: a node's clock may be ahead of ours (faults.md 12).
"""

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controllers.barrier.waiting_gauges import WaitingGauges
from jobset_gate import names
from jobset_gate.barrier import count
from jobset_gate.barrier.model import (
    Blocked,
    Decide,
    GangKey,
    GangSnapshot,
    Generation,
    PodSeen,
    Verdict,
    VerdictKind,
    Wait,
)

_LONG = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400)
_SHORT = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 90, 120)

# What may happen: a counter that is there from the start misses no first time.
VERDICTS = (
    (VerdictKind.RELEASE, names.REASON_STARTED),
    (VerdictKind.RELEASE, names.REASON_BYPASSED),
    (VerdictKind.RELEASE, names.REASON_TIMED_OUT),
    (VerdictKind.TIMEOUT, names.REASON_TIMED_OUT),
)
PATCHED = ("ok", "gone", "error")
STREAMED = ("told", "lost", "unknown", "forbidden", "malformed", "stopped", "too_many")


class GangMetrics:
    """Counts and times of gangs, in a registry. `clock`: seconds since the epoch."""

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.time) -> None:
        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"jobset_gate_{name}", text, buckets=buckets, registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"jobset_gate_{name}", text, labels, registry=registry)

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
            "decisions_total", "Verdicts taken. A release for TimedOut is on-timeout Release.", "kind", "cause"
        )
        self._patches = counter("annotation_patches_total", "Pods patched with a verdict.", "outcome")
        self._stream_requests = counter(
            "stream_requests_total", "Requests on the gate stream, by how they ended.", "outcome"
        )
        self._stream_open = Gauge(
            "jobset_gate_stream_open", "Requests held open on the gate stream.", registry=registry
        )
        for kind, cause in VERDICTS:
            self.decisions.labels(kind.value, cause)
        for outcome in PATCHED:
            self._patches.labels(outcome)
        for outcome in STREAMED:
            self._stream_requests.labels(outcome)
        self._waiting = WaitingGauges(registry, clock)
        self._released_at: dict[GangKey, tuple[Generation, float]] = {}

    def on_waiting(self, key: GangKey, seen: GangSnapshot, decision: Wait) -> None:
        """A pass found this gang's gate closed."""
        self._waiting.set_waiting(key, seen, decision)

    def on_blocked(self, key: GangKey, decision: Blocked) -> None:
        """A pass found that something stands in the way which waiting will not mend."""
        self._waiting.set_blocked(key, decision)

    def on_decided(self, key: GangKey, seen: GangSnapshot, decision: Decide, now: float) -> None:
        """This process took a verdict at `now`."""
        verdict = decision.verdict
        self.decisions.labels(verdict.kind.value, verdict.cause).inc()
        self._waiting.clear_gang(key)
        if verdict.kind is not VerdictKind.RELEASE:
            return
        if decision.clock is not None:
            self.time_to_release.observe(max(0.0, now - decision.clock.at))
        tally = count.count_gang(seen)
        first, last = _earliest(tally.first_start, tally.first_announced), tally.last_start
        if first is not None and last is not None:
            self.last_start_to_release.observe(max(0.0, now - last))
            self.pod_skew.observe(last - first)
        self._released_at[key] = (verdict.generation, now)

    def on_enforced(self, key: GangKey, seen: GangSnapshot, verdict: Verdict) -> None:
        """A pass found a verdict standing: nothing is held, and the main containers may all have started by now."""
        self.clear_gang(key)
        released = self._released_at.get(key)
        if released is None or released[0] != verdict.generation:
            return  # taken by another process: when exactly, nobody knows any more
        starts = _main_starts(seen)
        if starts is None:
            return
        self.release_to_last_main.observe(max(0.0, max(starts) - released[1]))
        self.skew.observe(max(starts) - min(starts))
        del self._released_at[key]

    def on_patched(self, outcome: str) -> None:
        """A pod was patched with a verdict; the hook of Patches."""
        self._patches.labels(outcome).inc()

    def set_open_requests(self, many: Callable[[], int]) -> None:
        """Where to read how many requests are open."""
        self._stream_open.set_function(many)

    def on_stream_request(self, outcome: str) -> None:
        """A request on the gate stream has ended; the hook of Stream."""
        self._stream_requests.labels(outcome).inc()

    def forget_gang(self, key: GangKey) -> None:
        """The gang is gone, finished, or somebody else's."""
        self.clear_gang(key)
        self._released_at.pop(key, None)

    def clear_gang(self, key: GangKey) -> None:
        """A pass found that this gang is held by no gate."""
        self._waiting.clear_gang(key)


def _earliest(*moments: float | None) -> float | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _main_starts(seen: GangSnapshot) -> list[float] | None:
    """When each pod's main containers started; None while one of them has not, or nobody is there."""
    pods: list[PodSeen] = [pod for pod in count.gang_pods(seen) if pod.alive]
    starts = [pod.main_since for pod in pods if pod.main_since is not None]
    return starts if starts and len(starts) == len(pods) else None
