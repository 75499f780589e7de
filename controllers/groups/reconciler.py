"""The reconciler of groups: what was decided is carried out, the wait limit is kept, what is over is cleared away (G4).

Several gangs that were opened in one decision share its record; it is kept on the first one's home, and that one's
turn deals with all of them. Safe to be interrupted between any two of its writes.
"""

from collections.abc import Callable
from typing import Final, Protocol

from controllers.groups.gates import Gates
from controllers.groups.limits import Limits
from controllers.groups.makers import Makers
from controllers.groups.records import Records
from controllers.groups.returns import HandsOver, Returns, TakesBack
from controllers.groups.storage import parsed
from controllers.refusals import terminating
from jobset_gate import names
from jobset_gate.groups import generation
from jobset_gate.groups.model import Key
from jobset_gate.groups.record import How, Record, Stage, of
from jobset_gate.groups.seen import GroupSeen
from jobset_gate.kube.errors import Forbidden

LAG: Final = 10.0
"""Seconds after a decision in which a new leader's watches may not have told of its pods yet."""


class View(Protocol):
    """What the reconciler needs of the index."""

    def observe(self, key: Key) -> GroupSeen | None:
        """All that is known of a group."""


class GroupReconciler:
    """One pass over one group."""

    def __init__(
        self,
        *,
        index: View,
        records: Records,
        gates: Gates,
        rollbacks: TakesBack,
        makers: Makers,
        now: Callable[[], float],
        native: HandsOver | None = None,
        wake: Callable[[Key], None],
        look: Callable[[Key], None],
        quiet: Callable[[GroupSeen], float] = lambda _: 0.0,
        spoken: Callable[[GroupSeen, str], None] = lambda _, __: None,
        forgotten: Callable[[Key], None] = lambda _: None,
        satisfied: Callable[[float], None] = lambda _: None,
        rolled_back: Callable[[], None] = lambda: None,
        makes_way: Callable[[Key], bool] = lambda _: False,
    ) -> None:
        """`wake`: another group is to be reconciled; `look`: the opener is to look at one; `spoken`: a group was looked
        at, and this is in the way of taking it back; `quiet`: seconds for which nobody is to speak of one; `satisfied`:
        so many seconds after it was opened; `makes_way`: whether a group of higher priority waits for the place of one.
        """
        self._index, self._records, self._gates, self._makers = index, records, gates, makers
        self._native, self._now, self._wake, self._look = native, now, wake, look
        self._quiet, self._spoken, self._forgotten = quiet, spoken, forgotten
        self._limits = Limits(
            records,
            gates,
            now=now,
            wake=wake,
            satisfied=satisfied,
            rolled_back=rolled_back,
            makes_way=makes_way,
        )
        self._returns = Returns(
            records=records,
            gates=gates,
            rollbacks=rollbacks,
            makers=makers,
            native=native,
            now=now,
            wake=wake,
            look=look,
        )
        self._copied: dict[Key, int] = {}

    async def reconcile(self, key: Key) -> float | None:
        """Looks at a group once. Returns the seconds after which to look again without being asked, if any."""
        seen = self._index.observe(key)
        if seen is None:
            await self._returns.resume(key)
            self._forget(key)
            return None
        try:
            again, blocked = await self._act(key, seen)
        except Forbidden as refused:
            if terminating(refused):
                return None  # the namespace goes, and its groups with it
            raise
        again = _sooner(again, generation.joins_in(seen, self._now()))
        seen = self._index.observe(key)
        if seen is None:
            return again
        wait = self._quiet(seen)
        if wait > 0:
            return _sooner(again, wait)
        self._spoken(seen, blocked)
        return again

    async def _act(self, key: Key, seen: GroupSeen) -> tuple[float | None, str]:
        record = seen.record
        if record is None:
            self._gates.forget(key)
            self._limits.forget(key)
            await self._returns.resume(key)
            return await self._makers.ask(seen), ""
        if record.stage is Stage.CLOSED:
            self._limits.forget(key)
            return await self._returns.closed(key, seen, record), ""
        parts = self._parts(record, seen)
        first, over = generation.holder(record, parts), False
        if record.stage is Stage.OPEN:
            over = self._is_over(parts if key in parts else {key: seen})
            pods = () if over else generation.passing(seen, record, self._now(), self._gates.under_way(key))
            self._gates.want(key, pods, record.generation)
            if self._native is not None and record.how is How.NATIVE and not over and not pods:
                await self._native.hand_over(seen, record)
        if first is None:
            return None, ""  # its home is gone, and with it the record
        if first != key:
            await self._copy(key, seen, record)
            self._wake(first)
            return None, ""
        if record.stage is Stage.ROLLING_BACK:
            return await self._returns.take_back(seen, record, parts)
        return await self._keep(seen, record, parts, over=over), ""

    def _parts(self, record: Record, known: GroupSeen) -> dict[Key, GroupSeen]:
        """The gangs of a decision that are still there, and still in it."""
        seen = {key: known if key == known.group.key else self._index.observe(key) for key, _ in record.gangs}
        return {
            key: it
            for key, it in seen.items()
            if it is not None and it.record is not None and it.record.gangs == record.gangs and it.home is not None
        }

    async def _keep(self, seen: GroupSeen, record: Record, parts: dict[Key, GroupSeen], *, over: bool) -> float | None:
        """The wait limit, and the end."""
        key = seen.group.key
        if over:
            wait = 0.0 if record.satisfied is not None or self._gates.passed(key) else record.at + LAG - self._now()
            if wait > 0:
                return wait
            await self._returns.end(key, seen, record)
            return None
        if record.satisfied is not None:
            return None
        return await self._limits.keep(seen, record, list(parts.values()))

    async def _copy(self, key: Key, seen: GroupSeen, record: Record) -> None:
        """A decision that stands on another's home is kept here, too: that one may go first."""
        if self._copied.get(key) == record.generation or (seen.home is None and seen.group.lacks_pod_group):
            return
        own = parsed(seen.annotations.get(names.GANG_RECORD, ""))
        mine = None if own is None else of(own, key)
        if mine is None or mine.generation < record.generation:
            await self._records.write(seen, record)
        self._copied[key] = record.generation

    def _is_over(self, parts: dict[Key, GroupSeen]) -> bool:
        """A decision on several gangs is over only for all: till then who comes to one of them takes a place in it."""
        return generation.is_over([(seen, self._begun(key, seen)) for key, seen in parts.items()])

    def _begun(self, key: Key, seen: GroupSeen) -> bool:
        """Whether some were opened from here; of those opened just now the watch may still tell that they are held."""
        under_way = self._gates.under_way(key)
        opened_here = seen.record is not None and self._gates.passed(key) == seen.record.generation
        return opened_here and not any(it.uid in under_way for it in seen.members)

    def _forget(self, key: Key) -> None:
        self._gates.forget(key)
        self._limits.forget(key)
        self._returns.forget(key)
        self._copied.pop(key, None)
        self._makers.forget(key)
        if self._native is not None:
            self._native.forget(key)
        self._forgotten(key)
        self._look(key)


def _sooner(one: float | None, other: float | None) -> float | None:
    return min((it for it in (one, other) if it is not None), default=None)
