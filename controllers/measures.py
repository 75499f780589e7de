"""The metrics of gangs (A9): how long they wait and why. Base units; never a name of a pod or JobSet as a label.

Differences between two clocks are cut at zero: a node's clock may be ahead of ours (faults.md 12).
"""

from collections import Counter as Tallies
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controllers.keys import Key
from jobset_gate import count
from jobset_gate.model import Decide, GangSeen, Generation, Kind, PodSeen, Verdict, Wait, Why

_LONG = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400)
_SHORT = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 90, 120)


class Measures:
    """Counts and times of gangs, in a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(name, text, buckets=buckets, registry=registry)

        self.time_to_release = histogram(
            "jobset_gate_time_to_release_seconds", "From a gang's first started pod to its release.", _LONG
        )
        self.last_start_to_release = histogram(
            "jobset_gate_last_start_to_release_seconds",
            "From the last pod's start, by its announcement or its node's clock in whole seconds, to the release.",
            _SHORT,
        )
        self.release_to_last_main = histogram(
            "jobset_gate_release_to_last_main_start_seconds",
            "From the release to the last main container's start, by its node's clock in whole seconds.",
            _SHORT,
        )
        self.skew = histogram(
            "jobset_gate_start_skew_seconds", "From a gang's first to its last main container's start.", _SHORT
        )
        self.decisions = Counter("jobset_gate_decisions_total", "Verdicts taken.", ["kind", "cause"], registry=registry)
        self._patches = Counter(
            "jobset_gate_annotation_patches_total", "Pods patched with a verdict.", ["outcome"], registry=registry
        )
        self._stream_open = Gauge(
            "jobset_gate_stream_open", "Requests held open on the gate stream.", registry=registry
        )
        self._stream_requests = Counter(
            "jobset_gate_stream_requests_total",
            "Requests on the gate stream, by how they ended.",
            ["outcome"],
            registry=registry,
        )
        self._waiting_gangs = Gauge("jobset_gate_waiting_gangs", "Gangs whose gate is closed.", registry=registry)
        self._waiting_pods = Gauge("jobset_gate_waiting_pods", "Started pods held at a closed gate.", registry=registry)
        self._missing_pods = Gauge(
            "jobset_gate_missing_pods", "Pods that closed gates wait for, by reason.", ["reason"], registry=registry
        )
        for why in Why:
            self._missing_pods.labels(why.value)
        self._waits: dict[Key, tuple[int, Tallies[Why]]] = {}
        self._totals: Tallies[Why] = Tallies()
        self._held = 0
        self._released_at: dict[Key, tuple[Generation, float]] = {}

    def waits(self, key: Key, decision: Wait) -> None:
        """A pass found this gang's gate closed."""
        self._drop(key)
        missing = Tallies(dict(decision.reasons))
        self._waits[key] = (decision.started, missing)
        self._held += decision.started
        self._totals.update(missing)
        self._show()

    def decided(self, key: Key, seen: GangSeen, decision: Decide, now: float) -> None:
        """This process took a verdict at `now`."""
        verdict = decision.verdict
        self.decisions.labels(verdict.kind.value, verdict.cause).inc()
        if verdict.kind is not Kind.RELEASE:
            return
        if decision.clock is not None:
            self.time_to_release.observe(max(0.0, now - decision.clock.at))
        last = count.tally(seen).last_start
        if last is not None:
            self.last_start_to_release.observe(max(0.0, now - last))
        self._released_at[key] = (verdict.generation, now)

    def stands(self, key: Key, seen: GangSeen, verdict: Verdict) -> None:
        """A pass found a verdict standing: nothing is held, and the main containers may all have started by now."""
        self.nothing_held(key)
        released = self._released_at.get(key)
        if released is None or released[0] != verdict.generation:
            return  # taken by another process: when exactly, nobody knows any more
        starts = _main_starts(seen)
        if starts is None:
            return
        self.release_to_last_main.observe(max(0.0, max(starts) - released[1]))
        self.skew.observe(max(starts) - min(starts))
        del self._released_at[key]

    def patched(self, outcome: str) -> None:
        """A pod was patched with a verdict; the hook of Patches."""
        self._patches.labels(outcome).inc()

    def open_requests(self, many: Callable[[], int]) -> None:
        """Where to read how many requests are open."""
        self._stream_open.set_function(many)

    def stream_request(self, outcome: str) -> None:
        """A request on the gate stream has ended; the hook of Stream."""
        self._stream_requests.labels(outcome).inc()

    def forget(self, key: Key) -> None:
        """The gang is gone, finished, or somebody else's."""
        self.nothing_held(key)
        self._released_at.pop(key, None)

    def nothing_held(self, key: Key) -> None:
        """A pass found that this gang is held by no gate."""
        if self._drop(key):
            self._show()

    def _drop(self, key: Key) -> bool:
        gone = self._waits.pop(key, None)
        if gone is None:
            return False
        self._held -= gone[0]
        self._totals.subtract(gone[1])
        return True

    def _show(self) -> None:
        self._waiting_gangs.set(len(self._waits))
        self._waiting_pods.set(self._held)
        for why in Why:
            self._missing_pods.labels(why.value).set(self._totals[why])


def _main_starts(seen: GangSeen) -> list[float] | None:
    """When each pod's main containers started; None while one of them has not, or nobody is there."""
    pods: list[PodSeen] = [pod for pod in count.members(seen) if pod.alive]
    starts = [pod.main_since for pod in pods if pod.main_since is not None]
    return starts if starts and len(starts) == len(pods) else None
