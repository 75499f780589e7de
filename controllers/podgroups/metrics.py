"""Metrics of pod groups: pending ones by reason, latencies, evictions. No label is the name of an object."""

from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from jobset_gate import names
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.record import AdmissionMode
from jobset_gate.podgroups.status import GroupStatus

REASONS: Final = (
    names.REASON_POD_GROUP_MISSING,
    names.REASON_GATHERING,
    names.REASON_CANNOT_GATHER,
    names.REASON_WAITING_FOR_GANG_GROUP,
    names.REASON_WAITING_FOR_CAPACITY,
    names.REASON_BEHIND_OTHER,
    names.REASON_OTHER_GATE,
    names.REASON_PLACING,
    names.REASON_ROLLED_BACK,
    names.REASON_TIMED_OUT,
    names.REASON_INVALID_GROUP,
    names.REASON_INVALID_GANG_GROUP,
    names.REASON_ROLLBACK_BLOCKED,
    names.REASON_NATIVE_UNAVAILABLE,
    names.REASON_NOT_RECORDED,
)
"""Of groups that are not satisfied; each series exists from the start, so that no first increase is missed."""

GATES: Final = ("ok", "gone", "error")

_LONG: Final = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400)
_SHORT: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class PodGroupMetrics:
    """Each part increments its own counters; only the series by reason, counted at each scrape, need each group."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self._waiting = gauge(
            "jobset_gate_group_waiting", "Pod groups whose minimum is not bound, by reason.", ["reason"]
        )
        self.held_pods = gauge(
            "jobset_gate_group_held_pods",
            "Pods that our scheduling gate holds; standbys show it too, for the alert that nobody leads.",
        )
        self.longest_wait = gauge(
            "jobset_gate_group_longest_wait_seconds",
            "Since its minimum of pods exists, of the group that waits longest for room; 0 if none does.",
        )
        self._opened = counter(
            "jobset_gate_group_opened_total",
            "Groups opened: Fit (proven to have room), Probe (not proven), Off (nobody looked), Native (handed over).",
            ["how"],
        )
        self.evictions = counter(
            "jobset_gate_group_rolled_back_total", "Groups taken back because they missed their limit."
        )
        self.gates = counter(
            "jobset_gate_group_gates_total", "Gates removed from pods; gone: the pod was, before.", ["outcome"]
        )
        self.cycle_seconds = histogram(
            "jobset_gate_group_decision_seconds", "Work of one pass over the groups that wait.", buckets=_SHORT
        )
        self._gathered = histogram(
            "jobset_gate_group_gathered_to_opened_seconds",
            "From a group's minimum of pods to its decision.",
            buckets=_LONG,
        )
        self.satisfied_seconds = histogram(
            "jobset_gate_group_opened_to_satisfied_seconds", "From the decision to the minimum bound.", buckets=_LONG
        )
        self._reasons: dict[PodGroupKey, str] = {}
        for reason in REASONS:
            self._waiting.labels(reason).set_function(partial(self._count_waiting, reason))
        for how in AdmissionMode:
            self._opened.labels(how.value)
        for outcome in GATES:
            self.gates.labels(outcome)

    def observe_report(self, report: GroupStatus) -> None:
        """Counts a group under its reason."""
        self._reasons.pop(report.key, None)
        if report.reason in REASONS and (report.admitted or report.counts.present):
            self._reasons[report.key] = report.reason

    def forget_group(self, key: PodGroupKey) -> None:
        self._reasons.pop(key, None)

    def observe_admission(self, how: AdmissionMode, seconds: float) -> None:
        """A group was admitted that could have been admitted so many seconds ago."""
        self._opened.labels(how.value).inc()
        self._gathered.observe(max(0.0, seconds))

    def _count_waiting(self, reason: str) -> int:
        return sum(it == reason for it in self._reasons.values())
