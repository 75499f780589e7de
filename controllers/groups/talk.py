"""When something is to be said of a group, and handing it to those who say it: to heralds and to the metrics (G5)."""

from collections.abc import Callable

from controllers.groups.heralds import PLACING_PATIENCE, GroupHeralds
from controllers.groups.measures import GroupMeasures
from jobset_gate.groups import barrier_seen, generation
from jobset_gate.groups.candidates import Hold
from jobset_gate.groups.model import Key
from jobset_gate.groups.record import Stage
from jobset_gate.groups.report import report
from jobset_gate.groups.seen import GroupSeen
from jobset_gate.groups.standing import Standing
from jobset_gate.model import JobSetSeen


class Talk:
    """`why`: what holds a group up, by the opener. A report takes time for each pod, so it is made if need be only."""

    def __init__(
        self,
        why: Callable[[Key], Hold | Standing | None],
        heralds: GroupHeralds,
        measures: GroupMeasures,
        *,
        clock: Callable[[], float],
        jobset: Callable[[str, str], JobSetSeen | None],
    ) -> None:
        self._why, self._heralds, self._measures = why, heralds, measures
        self._clock, self._jobset = clock, jobset
        self._told: dict[Key, float] = {}
        """The time of the decision of which it was said that it is being carried out."""

    def quiet(self, seen: GroupSeen) -> float:
        """Seconds for which to say nothing. Of a group that is being placed it is said once that it is."""
        key, record = seen.group.key, seen.record
        if record is None or record.stage is not Stage.OPEN:
            self._told.pop(key, None)
            return 0.0
        if self._told.get(key) != record.at:
            self._told[key] = record.at
            return 0.0
        if record.satisfied is not None or generation.bound(seen) >= record.minimum:
            return 0.0
        return max(0.0, record.at + PLACING_PATIENCE - 1 - self._clock())

    def speak(self, seen: GroupSeen, blocked: str) -> None:
        """A group is like this now; `blocked` is in the way of taking it back."""
        doubts = barrier_seen.doubts(seen, self._jobset)
        told = report(seen, self._clock(), self._why(seen.group.key), blocked, doubts=doubts)
        self._measures.looks(told)
        self._heralds.want(told)

    def forget(self, key: Key) -> None:
        """Nothing is left of it."""
        self._told.pop(key, None)
        self._heralds.forget(key)
        self._measures.forget(key)
