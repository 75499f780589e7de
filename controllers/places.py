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

from controllers.keys import Key

MOST = 50_000
"""Places in all, as long as the process may open as many files."""

EACH = 2
"""For one pod: the line that it had before it reconnected may be half open for a while."""

STRANGERS = 16
"""For one gang's pods of which the index does not know that they wait."""

PART = 10
"""One in so many of all places is the most that strangers of one namespace take."""


@dataclass(slots=True)
class _Taken:
    """What one gang has."""

    pods: Counter[str] = field(default_factory=Counter)
    strangers: int = 0


class Places:
    """Places taken at this moment. A pod is told by its UID; `known`: the index knows that it waits on a node."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.taken = 0
        self._gangs: dict[Key, _Taken] = {}
        self._strangers: Counter[str] = Counter()
        """By namespace."""

    def take(self, key: Key, pod: str, *, known: bool) -> bool:
        """False: there is none for this pod."""
        gang = self._gangs.get(key) or _Taken()
        if self.taken >= self.most or gang.pods[pod] >= EACH:
            return False
        if not known:
            part = max(STRANGERS, self.most // PART)
            if gang.strangers >= STRANGERS or self._strangers[key.namespace] >= part:
                return False
            gang.strangers += 1
            self._strangers[key.namespace] += 1
        self._gangs[key] = gang
        self.taken += 1
        gang.pods[pod] += 1
        return True

    def give_back(self, key: Key, pod: str, *, known: bool) -> int:
        """One that was taken like this. How many the pod still has."""
        gang = self._gangs[key]
        self.taken -= 1
        gang.pods[pod] -= 1
        left = gang.pods[pod]
        if not left:
            del gang.pods[pod]
        if not known:
            gang.strangers -= 1
            self._strangers[key.namespace] -= 1
            if not self._strangers[key.namespace]:
                del self._strangers[key.namespace]
        if not gang.pods:
            del self._gangs[key]
        return left
