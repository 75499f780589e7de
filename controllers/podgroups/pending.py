"""Who waits to be opened, and what is open and not placed yet: kept up to date group by group, as each changes (G3).

What does not change is not looked at again, so that a thousand groups cost nothing while one of them changes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

import structlog

from jobset_gate import names
from jobset_gate.podgroups import gang_groups
from jobset_gate.podgroups.candidate import AdmittedGroup, Candidate, Hold
from jobset_gate.podgroups.evaluate import GangGroupMemo, GroupEvaluator, make_domains
from jobset_gate.podgroups.fit.anti_affinity import LabelledPod
from jobset_gate.podgroups.fit.domains import Domains
from jobset_gate.podgroups.fit.guaranteed import NodeInfo, PodShape
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.reserved import is_being_scheduled, living_shapes, reserved_for, reserved_for_absent
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.runtime.clock import monotonic

RESYNC_SECONDS: Final = 5.0
"""Seconds between two looks at what time alone changes: it ends back-offs, and takes others out of the reckoning."""


MAX_FAULT_MESSAGE: Final = 500
"""Characters of what went wrong in us."""

_log = structlog.get_logger(__name__)


class PodGroupReader(Protocol):
    """What the opener needs of the index."""

    def snapshot(self, key: PodGroupKey) -> GroupSnapshot | None:
        """All that is known of a group."""

    def keys(self) -> Iterable[PodGroupKey]:
        """All groups."""

    def node_infos(self) -> Sequence[NodeInfo]:
        """What is free on each node."""

    def excluded_nodes(self, marks: Iterable[LabelledPod]) -> frozenset[str]:
        """The nodes from which bound pods keep one of such pods away."""

    def accounts_for(self, uid: str) -> bool:
        """Whether what this pod takes is reckoned with in `rooms`."""


class PendingQueue:
    """`dirty` are the groups to be looked at, `waiting` those that may be opened, by the first gang of each GangGroup,
    and `opened` what is to be reckoned with.
    """

    def __init__(
        self,
        index: PodGroupReader,
        outlook: GroupEvaluator,
        *,
        checks: bool,
        told: Callable[[PodGroupKey], None],
    ) -> None:
        """`checks`: whether room is looked at; `told` hears of each group of which something else is to be said."""
        self._index, self._outlook, self._checks, self._told = index, outlook, checks, told
        self.dirty: set[PodGroupKey] = set()
        self.progressed: set[PodGroupKey] = set()
        """Open groups that need no more room than they are reckoned with, and perhaps less: enough to know that as long
        as nobody is held up."""
        self.waiting: dict[PodGroupKey, Candidate] = {}
        self.admitted: dict[PodGroupKey, tuple[AdmittedGroup, ...]] = {}
        self.changes = 0
        """How often what is open was found different."""
        self.node_infos: Sequence[NodeInfo] = ()
        self._domains = Domains()
        self._swept = monotonic()
        self._leads: dict[PodGroupKey, PodGroupKey] = {}
        self._listing: dict[PodGroupKey, set[PodGroupKey]] = {}
        self._lists: dict[PodGroupKey, tuple[PodGroupKey, ...]] = {}
        self._why: dict[PodGroupKey, Hold | GroupReason] = {}
        self._together: GangGroupMemo = {}
        """What was found of GangGroups since `concerned` was asked the last time."""
        self._shapes: dict[PodGroupKey, tuple[int, tuple[PodShape, ...]]] = {}
        """Generation, and its pods when there were most of them, of groups that are being placed."""

    def why_pending(self, key: PodGroupKey) -> Hold | GroupReason | None:
        """What holds a group up; None: nothing that is known, or it is open."""
        return self._why.get(key)

    def set_reason(self, key: PodGroupKey, why: Hold | GroupReason | None) -> None:
        """This holds it up by now."""
        before = self._why.pop(key, None)
        if why is not None:
            self._why[key] = why
        if _words(before) != _words(why):
            self._told(key)

    def is_current(self, candidate: Candidate) -> bool:
        """Whether nothing has changed in its gangs since it was judged."""
        return candidate.key in self.waiting and not any(it.key in self.dirty for it in candidate.requests)

    def candidate(self, key: PodGroupKey, now: float) -> Candidate | None:
        """The group, or GangGroup, as it is at this very moment; None: it may not be opened any more."""
        seen = self._index.snapshot(key)
        answer = None if seen is None else self._outlook.evaluate(seen, self._domains, now)
        return answer if isinstance(answer, Candidate) else None

    def mark_all_dirty(self) -> None:
        """Nothing is known yet."""
        self.dirty.update(self._index.keys())

    def refresh_nodes(self) -> None:
        """The nodes as they are now. If other nodes are there, or other labels, all domains are made anew."""
        before, self.node_infos = self.node_infos, self._index.node_infos()
        if before is self.node_infos:
            return
        same = len(before) == len(self.node_infos) and all(
            (old.node is new.node or old.node == new.node) and (old.empty is new.empty or old.empty == new.empty)
            for old, new in zip(before, self.node_infos, strict=True)
        )
        if not same:
            self._domains = make_domains(self.node_infos)
            self.dirty.update(self._index.keys())

    def mark_timed_dirty(self) -> None:
        """Time alone changes some: those are looked at now and then."""
        if monotonic() - self._swept >= RESYNC_SECONDS:
            self._swept = monotonic()
            self.dirty.update(self._why)
            self.progressed.update(self.admitted)
            kept = self._listing.keys() | self.admitted.keys()
            self._shapes = {key: known for key, known in self._shapes.items() if key in kept}

    def take_dirty(self) -> set[PodGroupKey]:
        """Who is to be judged, since something has changed: who has, and those whose GangGroup they are in, or say they
        are. None of them is dirty any more.
        """
        changed, self.dirty = self.dirty, set()
        self.progressed -= changed
        self._together = {}
        found = set(changed)
        for key in changed:
            found.update(self._lists.get(key, ()))
            try:
                self._relist(key, self._index.snapshot(key))
            except Exception as error:  # noqa: BLE001 - as in `leave_out`
                self.set_faulty(key, error)
            found.update(self._lists.get(key, ()), self._listing.get(key, ()))
        return found

    def set_faulty(self, key: PodGroupKey, error: Exception) -> None:
        """A fault of ours that shows on this group must not hold up all others: it waits, and is tried now and then."""
        self._leave(key)
        message = f"cannot be judged, which is a fault of jobset-gate's own that its log has more of: {error!r}"
        told = GroupReason(reason=names.REASON_INVALID_GROUP, message=message[:MAX_FAULT_MESSAGE])
        if _words(self._why.get(key)) != _words(told):
            _log.error("group not judged", group=key.path, error=repr(error), exc_info=error)
        self.set_reason(key, told)

    def evaluate_group(self, key: PodGroupKey, now: float) -> None:
        """One group is as it is now."""
        seen = self._index.snapshot(key)
        self._reckon(key, seen, now)
        self._leave(key)
        if seen is None:
            self._why.pop(key, None)
            return
        answer = self._outlook.evaluate(seen, self._domains, now, self._together)
        if isinstance(answer, Candidate):
            self.waiting[answer.key] = answer
            self._leads |= dict.fromkeys((it.key for it in answer.requests), answer.key)
        else:
            self.set_reason(key, answer)

    def _leave(self, key: PodGroupKey) -> None:
        lead = self._leads.pop(key, None)
        if lead is not None:
            self.waiting.pop(lead, None)

    def _relist(self, key: PodGroupKey, seen: GroupSnapshot | None) -> None:
        """Who lists whom, so that a list that has changed is noticed by all who are in it."""
        for other in self._lists.pop(key, ()):
            self._listing[other].discard(key)
            if not self._listing[other]:
                del self._listing[other]
        if seen is None or not seen.group.gangs:
            return
        self._lists[key] = tuple(gang_groups.gang_key(it) for it in seen.group.gangs)
        for other in self._lists[key]:
            self._listing.setdefault(other, set()).add(key)

    def _reckon(self, key: PodGroupKey, seen: GroupSnapshot | None, now: float) -> None:
        """What of it others have to leave room for."""
        still = self._outstanding(seen, now)
        before = self.admitted.pop(key, ())
        if still:
            self.admitted[key] = still
        self.changes += before != still

    def _outstanding(self, seen: GroupSnapshot | None, now: float) -> tuple[AdmittedGroup, ...]:
        if seen is None or not self._checks:
            return ()
        self._remember(seen)
        here = reserved_for(seen, self._index.accounts_for, self._domains, now, self._before(seen.group.key))
        return (*here, *reserved_for_absent(seen, self._index.snapshot, self._before, self._domains))

    def _before(self, key: PodGroupKey) -> tuple[PodShape, ...]:
        return self._shapes[key][1] if key in self._shapes else ()

    def _remember(self, seen: GroupSnapshot) -> None:
        record, key = seen.record, seen.group.key
        if record is None or not is_being_scheduled(record):
            self._shapes.pop(key, None)
            return
        there = living_shapes(seen, self._domains)
        known = self._shapes.get(key, (0, ()))
        if known[0] != record.generation or _many(there) >= _many(known[1]):
            self._shapes[key] = record.generation, there


def _many(shapes: Iterable[PodShape]) -> int:
    return sum(it.count for it in shapes)


def _words(why: Hold | GroupReason | None) -> tuple[str, str] | None:
    return None if why is None else (why.reason, why.message)
