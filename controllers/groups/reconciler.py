"""The reconciler of groups: what was decided is carried out, the wait limit is kept, what is over is cleared away (G4).

Several gangs that were opened in one decision share its record; it is kept on the first one's home, and that one's
turn deals with all of them. Safe to be interrupted between any two of its writes.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, Protocol

import msgspec
import structlog

from controllers.groups.gates import Gates
from controllers.groups.makers import Makers
from controllers.groups.records import Records, parsed
from controllers.refusals import terminating
from jobset_gate import names
from jobset_gate.groups import generation, wayback
from jobset_gate.groups.model import Key
from jobset_gate.groups.record import How, Record, Stage, of
from jobset_gate.groups.seen import GroupSeen
from jobset_gate.kube.errors import Forbidden

BLOCKED_AGAIN: Final = 30.0
"""Seconds after which a way back that is blocked is tried again without being asked."""

KEPT_SECONDS: Final = 300.0
"""How long the record of a group without members is kept after its back-off: its owner may be about to make them."""

_log = structlog.get_logger(__name__)


class View(Protocol):
    """What the reconciler needs of the index."""

    def observe(self, key: Key) -> GroupSeen | None:
        """All that is known of a group."""


class Rolled(Protocol):
    """The end of a way back."""

    @property
    def blocked(self) -> tuple[str, ...]:
        """Pods that cannot be taken back."""

    @property
    def why(self) -> str:
        """Why not."""


class TakesBack(Protocol):
    """Whoever takes members back."""

    async def advance(self, seen: Sequence[GroupSeen], record: Record) -> "Rolled | float":
        """One step; gives the seconds until the next, or the end."""

    async def resume(self, label: str, generation: int, namespace: str) -> None:
        """Lets owners that were suspended for it go on."""


class HandsOver(Protocol):
    """Whoever gives groups to the scheduler's own gangs."""

    async def hand_over(self, seen: GroupSeen, record: Record) -> None:
        """Once all gates are gone."""

    async def withdraw(self, seen: GroupSeen) -> None:
        """Before its members are taken back."""

    def forget(self, key: Key) -> None:
        """Nothing is left of it."""


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
        spoken: Callable[[GroupSeen, str], None] = lambda _, __: None,
        forgotten: Callable[[Key], None] = lambda _: None,
        satisfied: Callable[[float], None] = lambda _: None,
        rolled_back: Callable[[], None] = lambda: None,
    ) -> None:
        """`wake`: another group is to be reconciled; `look`: the opener is to look at one; `spoken`: a group was looked
        at, and this is in the way of taking it back; `satisfied`: so many seconds after it was opened.
        """
        self._index, self._records, self._gates, self._rollbacks = index, records, gates, rollbacks
        self._makers, self._now, self._wake, self._look = makers, now, wake, look
        self._native = native
        self._spoken, self._forgotten = spoken, forgotten
        self._satisfied, self._rolled_back = satisfied, rolled_back
        self._begun: dict[Key, tuple[int, float]] = {}
        """Since when the limit of a generation runs: who takes another's place later does not set it back."""
        self._suspended: dict[Key, tuple[str, int]] = {}
        """Labels and generations whose owners may be suspended: they are to go on once it is closed, or gone."""
        self._copied: dict[Key, int] = {}
        self._refilled: set[Key] = set()
        """Groups given up that have had members since."""

    async def reconcile(self, key: Key) -> float | None:
        """Looks at a group once. Returns the seconds after which to look again without being asked, if any."""
        seen = self._index.observe(key)
        if seen is None:
            await self._resume(key)
            self._forget(key)
            return None
        try:
            again, blocked = await self._act(key, seen)
        except Forbidden as refused:
            if terminating(refused):
                return None  # the namespace goes, and its groups with it
            raise
        seen = self._index.observe(key)
        if seen is not None:
            self._spoken(seen, blocked)
        return again

    async def _act(self, key: Key, seen: GroupSeen) -> tuple[float | None, str]:
        record = seen.record
        if record is None:
            self._gates.forget(key)
            await self._resume(key)
            return await self._makers.ask(seen), ""
        if record.stage is Stage.CLOSED:
            return await self._closed(key, seen, record), ""
        parts = self._parts(record)
        first = generation.holder(record, parts)
        if record.stage is Stage.OPEN:
            over = self._is_over(key, seen)
            pods = () if over else generation.passing(seen, record, self._gates.under_way(key))
            self._gates.want(key, pods, record.generation)
            if self._native is not None and record.how is How.NATIVE and not over and not pods:
                await self._native.hand_over(seen, record)
        if first is not None and first != key:
            await self._copy(key, seen, record)
            self._wake(first)
            return None, ""
        if record.stage is Stage.ROLLING_BACK:
            return await self._take_back(seen, record, parts)
        return await self._keep(key, seen, record, parts), ""

    def _parts(self, record: Record) -> dict[Key, GroupSeen]:
        """The gangs of a decision that are still there, and still in it."""
        seen = {key: self._index.observe(key) for key, _ in record.gangs}
        return {
            key: it
            for key, it in seen.items()
            if it is not None and it.record is not None and it.record.gangs == record.gangs and it.home is not None
        }

    # --- Open --------------------------------------------------------------------------------------------------------

    async def _keep(self, key: Key, seen: GroupSeen, record: Record, parts: dict[Key, GroupSeen]) -> float | None:
        """The wait limit, and the end."""
        if all(self._is_over(*it) for it in parts.items()):
            await self._end(key, seen, record)
            return None
        if record.satisfied is not None:
            return None
        now = self._now()
        since = self._since(key, record, list(parts.values()))
        placings = [_placing(it, record, now if since is None else since) for it in parts.values()]
        verdicts = [wayback.decide(it, now) for it in placings]
        if all(isinstance(it, wayback.Satisfied) for it in verdicts):
            await self._satisfy(seen, record, now)
            return None
        if since is None:
            return None
        return await self._late(seen, record, placings, verdicts)

    async def _late(
        self, seen: GroupSeen, record: Record, placings: Sequence[wayback.Placing], verdicts: Sequence[object]
    ) -> float | None:
        """Some have not come to their minimum; perhaps the limit has passed."""
        backs = [it for it in verdicts if isinstance(it, wayback.RollBack)]
        if backs:
            short = "; ".join(
                f"{it.bound} of {it.minimum} pods were bound within {float(it.wait) * (1 + it.extended):g}s"
                for it in placings
                if it.bound < it.minimum
            )
            retry = all(it.retry for it in backs)
            await self._write(seen, msgspec.structs.replace(record, stage=Stage.ROLLING_BACK, why=short, retry=retry))
            _log.info("group is taken back", group=seen.group.key.path, generation=record.generation, why=short)
            self._rolled_back()
            return 0.0
        extends = [it.again for it in verdicts if isinstance(it, wayback.Extend)]
        if extends:
            await self._write(seen, msgspec.structs.replace(record, extended=True))
            return min(extends)
        again = [it.again for it in verdicts if isinstance(it, wayback.More)]
        if again:
            return min(again)
        if not record.marked:
            await self._write(seen, msgspec.structs.replace(record, marked=True))
        for part in self._parts(record).values():
            late = [it for it in generation.opened(part, record.generation) if it.alive and not it.bound]
            self._gates.mark(part.group.key, [it for it in late if not it.timed_out])
        return None

    def _since(self, key: Key, record: Record, parts: Sequence[GroupSeen]) -> float | None:
        known = self._begun.get(key)
        if known is not None and known[0] == record.generation:
            return known[1]
        begun = generation.begun(parts, record)
        if begun is not None:
            self._begun[key] = record.generation, begun
        return begun

    async def _satisfy(self, seen: GroupSeen, record: Record, now: float) -> None:
        await self._write(seen, msgspec.structs.replace(record, satisfied=now, rolled_back=0))
        self._satisfied(max(0.0, now - record.at))
        for key, _ in record.gangs:
            self._wake(key)  # later members pass from now on

    async def _copy(self, key: Key, seen: GroupSeen, record: Record) -> None:
        """A decision that stands on another's home is kept here, too: that one may go first."""
        if self._copied.get(key) == record.generation or (seen.home is None and seen.group.lacks_pod_group):
            return
        own = parsed(seen.annotations.get(names.GANG_RECORD, ""))
        mine = None if own is None else of(own, key)
        if mine is None or mine.generation < record.generation:
            await self._write(seen, record)
        self._copied[key] = record.generation

    async def _end(self, key: Key, seen: GroupSeen, record: Record) -> None:
        """All of its members are gone."""
        if not seen.members and seen.home is not None and not seen.home.api:
            await self._records.remove(key, seen.home)
            return
        ended = msgspec.structs.replace(
            record, stage=Stage.CLOSED, rolled_back=0, not_before=0.0, retry=True, why="", satisfied=None
        )
        await self._write(seen, ended)
        self._look(key)

    # --- Back --------------------------------------------------------------------------------------------------------

    async def _take_back(
        self, seen: GroupSeen, record: Record, parts: dict[Key, GroupSeen]
    ) -> tuple[float | None, str]:
        for each, it in parts.items():
            await self._gates.stop(each)
            if self._native is not None and record.how is How.NATIVE:
                await self._native.withdraw(it)
            self._suspended[each] = it.label, it.generation
        answer = await self._rollbacks.advance(list(self._parts(record).values()), record)
        if isinstance(answer, int | float):
            return float(answer), ""
        if answer.blocked:
            return BLOCKED_AGAIN, f"{answer.why}: {', '.join(answer.blocked)}" if answer.why else ", ".join(
                answer.blocked
            )
        pause = wayback.pause(record.rolled_back)
        closed = msgspec.structs.replace(
            record, stage=Stage.CLOSED, not_before=self._now() + pause, rolled_back=record.rolled_back + 1
        )
        await self._write(seen, closed)
        for each in parts:
            self._wake(each)
        return 0.0, ""

    async def _closed(self, key: Key, seen: GroupSeen, record: Record) -> float | None:
        """Taken back, or over: its owners go on, and what is left of it is cleared away in time."""
        self._gates.stop_removing(key)
        self._begun.pop(key, None)
        await self._resume(key)
        if seen.members:
            return await self._waits(key, seen, record)
        now = self._now()
        forgiven = not record.rolled_back or key in self._refilled or now >= record.not_before + KEPT_SECONDS
        if not forgiven:
            return record.not_before + KEPT_SECONDS - now
        self._refilled.discard(key)
        if not record.retry or (seen.home is not None and not seen.home.api):
            await self._end(key, seen, record)
        return None

    async def _waits(self, key: Key, seen: GroupSeen, record: Record) -> float | None:
        if record.retry:
            left = record.not_before - self._now()
            if left > 0:
                return left
            self._look(key)
            return await self._makers.ask(seen)
        self._refilled.add(key)
        self._gates.mark(key, [it for it in seen.members if it.alive and not it.timed_out])
        return None

    # --- Details -----------------------------------------------------------------------------------------------------

    def _is_over(self, key: Key, seen: GroupSeen) -> bool:
        record = seen.record
        return record is None or generation.is_over(seen, record, begun=self._gates.passed(key) == record.generation)

    async def _write(self, seen: GroupSeen, record: Record) -> None:
        await self._records.write(seen, record)
        for key, _ in record.gangs:
            self._look(key)

    async def _resume(self, key: Key) -> None:
        """Lets owners go on that were suspended from here; those of a process before this one had their turn first."""
        found = self._suspended.get(key)
        if found is not None:
            await self._rollbacks.resume(*found, key.namespace)
            del self._suspended[key]

    def _forget(self, key: Key) -> None:
        self._gates.forget(key)
        self._refilled.discard(key)
        for known in (self._begun, self._copied):
            known.pop(key, None)
        self._makers.forget(key)
        if self._native is not None:
            self._native.forget(key)
        self._forgotten(key)
        self._look(key)


def _placing(seen: GroupSeen, record: Record, since: float) -> wayback.Placing:
    own = record if seen.record is None else seen.record
    return wayback.Placing(
        design=seen.group.key.design,
        mode=own.mode,
        minimum=own.minimum,
        bound=generation.bound(seen, own.generation),
        since=since,
        wait=Fraction(record.wait),
        extended=record.extended,
        rolled_back=record.rolled_back,
    )
