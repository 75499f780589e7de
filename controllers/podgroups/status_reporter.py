"""When something is to be said of a group, and handing it to those who say it: to heralds and to the metrics (G5)."""

from collections.abc import Callable

from controllers.podgroups.metrics import PodGroupMetrics
from controllers.podgroups.status import PLACING_QUIET_SECONDS, PodGroupStatusWorker
from jobset_gate.barrier.model import JobSetSeen
from jobset_gate.podgroups import barrier_preconditions, generation
from jobset_gate.podgroups.candidate import Hold
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.podgroups.status import group_status


class StatusReporter:
    """`why`: what holds a group up, by the opener. A report takes time for each pod, so it is made if need be only."""

    def __init__(
        self,
        why: Callable[[PodGroupKey], Hold | GroupReason | None],
        heralds: PodGroupStatusWorker,
        measures: PodGroupMetrics,
        *,
        clock: Callable[[], float],
        jobset: Callable[[str, str], JobSetSeen | None],
    ) -> None:
        self._why, self._heralds, self._measures = why, heralds, measures
        self._clock, self._jobset = clock, jobset
        self._told: dict[PodGroupKey, float] = {}
        """The time of the decision of which it was said that it is being carried out."""

    def quiet_seconds(self, seen: GroupSnapshot) -> float:
        """Seconds for which to say nothing. Of a group that is being placed it is said once that it is."""
        key, record = seen.group.key, seen.record
        if record is None or record.stage is not AdmissionState.OPEN:
            self._told.pop(key, None)
            return 0.0
        if self._told.get(key) != record.at:
            self._told[key] = record.at
            return 0.0
        if record.satisfied is not None or generation.count_bound(seen) >= record.minimum:
            return 0.0
        return max(0.0, record.at + PLACING_QUIET_SECONDS - 1 - self._clock())

    def report_group(self, seen: GroupSnapshot, blocked: str) -> None:
        """A group is like this now; `blocked` is in the way of taking it back."""
        doubts = barrier_preconditions.barrier_doubts(seen, self._jobset)
        told = group_status(seen, self._clock(), self._why(seen.group.key), blocked, doubts=doubts)
        self._measures.observe_report(told)
        self._heralds.set_desired(told)

    def forget_group(self, key: PodGroupKey) -> None:
        """Nothing is left of it."""
        self._told.pop(key, None)
        self._heralds.forget_group(key)
        self._measures.forget_group(key)
