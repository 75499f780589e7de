"""What the informers know, kept by gang: changes come in, keys of gangs to look at go out.

A pass over a gang costs time in proportion to its pods, so not every pod event may cause one: a gang that lacks k
slots cannot become complete before k more pods have started. Until then passes are made at leisure, for the progress
that people see; the k-th start wakes the gang at once, be it reported by a kubelet or announced by the pod itself. Once
the gang is decided, only a pod that has not heard of it is in any hurry. The hint never decides anything: every pass
counts anew.
"""

from collections.abc import Callable, Container, Iterator

from controllers.keys import Key
from controllers.parts import Parts
from jobset_gate import verdicts
from jobset_gate.kube.store import Change
from jobset_gate.model import GangSeen, GateSeen, Generation, JobSeen, JobSetSeen, PodSeen, Stage, Verdict

LEISURE = 1.0
"""Seconds within which a change that cannot complete a gang is looked at."""

SOON = 0.25
"""Seconds within which a pod is looked at that waits for a decision taken already: with all the others that do."""

Wake = Callable[[Key], None]
WakeLater = Callable[[Key, float], None]


class Index:
    """Gangs, joined from four informers' changes. Its handlers are synchronous and cheap."""

    def __init__(
        self,
        wake: Wake,
        wake_later: WakeLater,
        told: Container[tuple[Key, str]] = (),
        touched: Wake = lambda _: None,
    ) -> None:
        """`told`: gang and UID of the pods that were told their verdict on the gate stream.

        `touched` hears of every change, for whoever shows gangs and decides nothing.
        """
        self._wake, self._wake_later, self._told, self._touched = wake, wake_later, told, touched
        self._gangs: dict[Key, Parts] = {}

    # --- Changes ---------------------------------------------------------------------------------------------------

    def on_jobset(self, change: Change[JobSetSeen]) -> None:
        """A JobSet with a config came, changed or went."""
        key = Key(*change.key)
        gang = self._gang(key)
        if change.old is not None and change.new is not None and change.old.uid != change.new.uid:
            gang.foreign_gate = False
        gang.meet(change.new)
        if change.old != change.new:
            self._touched(key)
            self._wake(key)
        self._tidy(key, gang)

    def on_job(self, change: Change[JobSeen]) -> None:
        """A gated Job came, changed in a way that matters, or went."""
        seen = change.new or change.old
        if seen is None or change.old == change.new:
            return
        if change.old is not None and change.old.gang != seen.gang:
            self.on_job(Change(change.key, change.old, None))  # the name is one of another gang by now
        key = Key(seen.namespace, seen.gang)
        gang = self._gang(key)
        if change.new is None:
            gang.jobs.pop(seen.name, None)
        else:
            gang.jobs[seen.name] = change.new
        self._touched(key)
        self._wake(key)
        self._tidy(key, gang)

    def on_pod(self, change: Change[PodSeen]) -> None:
        """A gated pod came, changed or went."""
        old, new = change.old, change.new
        seen = new or old
        if seen is None or old == new:
            return
        if old is not None and old.gang != seen.gang:
            self.on_pod(Change(change.key, old, None))  # it counts there no more, whoever has moved it
            old = None
        key = Key(seen.namespace, seen.gang)
        gang = self._gang(key)
        self._touched(key)
        if old is not None and (new is None or new.uid != old.uid):
            gang.pods.pop(old.uid, None)
            old = None
        if new is not None:
            gang.pods[new.uid] = new
            if new.counts(gang.announced) and not (old is not None and old.counts(gang.announced)):
                self._started(key, gang, new)
                return
        self._wake_later(key, LEISURE)
        self._tidy(key, gang)

    def on_gate(self, change: Change[GateSeen]) -> None:
        """A ConfigMap of ours came, changed or went; the echo of what we wrote ourselves wakes nobody."""
        seen = change.new or change.old
        if seen is None:
            return
        key = Key(seen.namespace, seen.gang)
        gang = self._gang(key)
        if change.new is None:
            gone = gang.gate is not None and gang.gate.uid == seen.uid
            gang.take(None if gone else gang.gate)
        elif gang.gate == change.new:
            return
        else:
            gang.take(change.new)
        self._touched(key)
        self._wake(key)
        self._tidy(key, gang)

    # --- What pods say themselves, on the gate stream (A6) -----------------------------------------------------------

    def announce(self, key: Key, pod: str, at: float) -> None:
        """The pod of this UID holds a request open, since then if it had none; it may not be known yet."""
        gang = self._gang(key)
        if pod in gang.announced:
            return
        gang.announced[pod] = at
        self._touched(key)
        known = gang.pods.get(pod)
        if known is not None and not known.started and known.counts(gang.announced):
            self._started(key, gang, known)

    def waits(self, key: Key, pod: str) -> bool:
        """Whether the gang has a pod of this UID that is on a node and has not passed its barrier."""
        gang = self._gangs.get(key)
        known = gang.pods.get(pod) if gang is not None else None
        if gang is None or gang.jobset is None or known is None or known.jobset_uid != gang.jobset.uid:
            return False
        return known.bound and known.alive and known.stage is not Stage.PASSED

    def withdraw(self, key: Key, pod: str) -> None:
        """It does so no more: the count falls, unless its kubelet has reported the start meanwhile."""
        gang = self._gangs.get(key)
        if gang is None or gang.announced.pop(pod, None) is None:
            return
        self._touched(key)
        self._wake_later(key, LEISURE)
        self._tidy(key, gang)

    def unheard(self, key: Key) -> None:
        """A pod was told on the stream, and nothing shows that it has heard: it is to be reached otherwise."""
        if key in self._gangs:
            self._wake_later(key, LEISURE)

    # --- What the reconciler itself found out ------------------------------------------------------------------------

    def saw_gate(self, key: Key, gate: GateSeen | None) -> None:
        """The ConfigMap as it is known after a write or a read of ours; what is news, the informer's store knows."""
        gang = self._gang(key)
        gang.foreign_gate = False
        gang.take(gate)
        self._touched(key)
        self._tidy(key, gang)  # its JobSet may have gone meanwhile

    def saw_foreign_gate(self, key: Key) -> None:
        """A ConfigMap of that name is not ours (A10)."""
        gang = self._gang(key)
        gang.foreign_gate = True
        self._touched(key)
        self._tidy(key, gang)

    def remember(self, key: Key, verdict: Verdict | None) -> None:
        """This verdict was the first of its generation, as the API has confirmed."""
        gang = self._gangs.get(key)
        if gang is not None:
            gang.remembered = verdict
            self._touched(key)

    def lacks(self, key: Key, slots: int) -> None:
        """So many starts are needed before another pass can find the gang complete."""
        gang = self._gangs.get(key)
        if gang is None:
            return
        gang.lacking = slots
        if 0 < slots <= gang.starts:
            self._wake(key)  # they came while the pass was under way

    # --- Looking -----------------------------------------------------------------------------------------------------

    def observe(self, key: Key) -> GangSeen | None:
        """Everything known of a gang; None if its JobSet is gone or asks for no gang."""
        gang = self._gangs.get(key)
        if gang is None or gang.jobset is None:
            return None
        gang.starts = 0
        return gang.seen()

    def look(self, key: Key) -> GangSeen | None:
        """The same for whoever only looks: no pass is made of it, so every start since the last one still counts."""
        gang = self._gangs.get(key)
        return gang.seen() if gang is not None else None

    def jobset(self, key: Key) -> JobSetSeen | None:
        """The gang's JobSet, if it is known."""
        gang = self._gangs.get(key)
        return gang.jobset if gang is not None else None

    def decided(self, key: Key) -> Verdict | None:
        """The verdict that the gang's own ConfigMap holds, as far as known (A6.1: it is durable)."""
        gang = self._gangs.get(key)
        return gang.decided if gang is not None else None

    def keys(self) -> Iterator[Key]:
        """All gangs whose JobSet is known."""
        return (key for key, gang in self._gangs.items() if gang.jobset is not None)

    def __len__(self) -> int:
        return len(self._gangs)

    def _gang(self, key: Key) -> Parts:
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = Parts()
        return gang

    def _started(self, key: Key, gang: Parts, pod: PodSeen) -> None:
        gang.starts += 1
        decided = gang.decided
        if decided is not None and decided.generation.covers(_generation(pod)):
            self._wake_later(key, LEISURE if self._knows(key, pod) else SOON)
        elif gang.starts >= gang.lacking:
            self._wake(key)
        else:
            self._wake_later(key, LEISURE)

    def _knows(self, key: Key, pod: PodSeen) -> bool:
        """Whether the verdict that binds it has reached this pod, or is on its way."""
        if pod.stage is not Stage.RUNNING or (key, pod.uid) in self._told:
            return True
        carried = verdicts.parse(pod.verdict)
        return carried is not None and carried.generation.covers(_generation(pod))

    def _tidy(self, key: Key, gang: Parts) -> None:
        if gang.empty:
            self._gangs.pop(key, None)


def _generation(pod: PodSeen) -> Generation:
    return Generation(pod.jobset_uid, pod.attempt, pod.epoch)
