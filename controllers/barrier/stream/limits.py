"""How many requests the gate stream may hold open, and for whom.

A place is a connection, an open file and 2 KiB for as long as its gang waits. A pod that the index knows to wait on a
node has one for itself and one more while it reconnects, in any number of pods: such pods are counted by the quotas
and the nodes of their namespace, and the gang of ten thousand pods for which the stream is made may be all there is in
its namespace. Everybody else has nothing but the gang's token, and a JobSet of any size costs nothing: a few places
for each gang, since the watch may tell of a pod later than the pod does of itself, and together at most a tenth of all
for one namespace. Whoever gets none asks again some seconds later, and has its files meanwhile.
"""

from collections import Counter
from dataclasses import dataclass, field

from jobset_gate.barrier.model import GangKey

MAX_REQUESTS = 50_000
"""Places in all, as long as the process may open as many files."""

MAX_PER_POD = 2
"""For one pod: the line that it had before it reconnected may be half open for a while."""

MAX_UNKNOWN_PER_GANG = 16
"""For one gang's pods of which the index does not know that they wait."""

UNKNOWN_DIVISOR = 10
"""One in so many of all places is the most that strangers of one namespace take."""


@dataclass(slots=True)
class _GangUsage:
    """What one gang has."""

    pods: Counter[str] = field(default_factory=Counter)
    unknown: int = 0


class RequestLimits:
    """Places taken at this moment. A pod is told by its UID; `known`: the index knows that it waits on a node."""

    def __init__(self, limit: int = MAX_REQUESTS) -> None:
        self.limit = limit
        self.used = 0
        self._gangs: dict[GangKey, _GangUsage] = {}
        self._unknown: Counter[str] = Counter()
        """By namespace."""

    def acquire(self, key: GangKey, pod: str, *, known: bool) -> bool:
        """False: there is none for this pod."""
        gang = self._gangs.get(key) or _GangUsage()
        if self.used >= self.limit or gang.pods[pod] >= MAX_PER_POD:
            return False
        if not known:
            part = max(MAX_UNKNOWN_PER_GANG, self.limit // UNKNOWN_DIVISOR)
            if gang.unknown >= MAX_UNKNOWN_PER_GANG or self._unknown[key.namespace] >= part:
                return False
            gang.unknown += 1
            self._unknown[key.namespace] += 1
        self._gangs[key] = gang
        self.used += 1
        gang.pods[pod] += 1
        return True

    def release(self, key: GangKey, pod: str, *, known: bool) -> int:
        """One that was taken like this. How many the pod still has."""
        gang = self._gangs[key]
        self.used -= 1
        gang.pods[pod] -= 1
        left = gang.pods[pod]
        if not left:
            del gang.pods[pod]
        if not known:
            gang.unknown -= 1
            self._unknown[key.namespace] -= 1
            if not self._unknown[key.namespace]:
                del self._unknown[key.namespace]
        if not gang.pods:
            del self._gangs[key]
        return left
