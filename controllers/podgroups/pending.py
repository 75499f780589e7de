"""Pod groups pending admission, and admitted groups whose pods are not all bound (G3).

Incremental: only dirty groups are evaluated, so a thousand groups cost nothing while one of them changes.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

import structlog

from controllers.podgroups.cache import PodGroupCache
from jobset_gate import names
from jobset_gate.podgroups.candidate import AdmittedGroup, Candidate, Domains, Hold
from jobset_gate.podgroups.cycle import SchedulingCycle
from jobset_gate.podgroups.evaluate import GangGroupMemo, GroupEvaluator
from jobset_gate.podgroups.fit.guaranteed import PodShape
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.reserved import is_being_scheduled, living_shapes, reserved_for, reserved_for_absent
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.runtime.clock import monotonic

RESYNC_SECONDS: Final = 5.0
"""Between two evaluations of what time alone changes: back-offs end, and reservations expire."""

LAZY_SECONDS: Final = 0.8
"""Until a change is evaluated that cannot admit the group itself."""

MESSAGE_SECONDS: Final = 5.0
"""Until a group is reconciled for another message with the same reason: what it lacks changes with every bound pod."""

MAX_FAULT_MESSAGE: Final = 500
"""Characters of an unexpected exception in a message."""

_log = structlog.get_logger(__name__)


class PendingQueue:
    """`waiting` are the candidates, by the first gang of each GangGroup; `admitted` is what needs reserved room."""

    def __init__(
        self,
        cache: PodGroupCache,
        evaluator: GroupEvaluator,
        on_reason: Callable[[PodGroupKey, float], None],
        *,
        reserves: bool,
    ) -> None:
        """`on_reason(key, delay)` is called for each group that is pending for another reason, with the seconds for
        which its status may wait. `reserves`: room is counted.
        """
        self._cache, self._evaluator, self._on_reason, self._reserves = cache, evaluator, on_reason, reserves
        self.waiting: dict[PodGroupKey, Candidate] = {}
        self.admitted: dict[PodGroupKey, tuple[AdmittedGroup, ...]] = {}
        self.must_yield: frozenset[PodGroupKey] = frozenset()
        """Unproven admitted groups whose place a group of higher priority waits for."""
        self._dirty: set[PodGroupKey] = set()
        self._started = False
        self._work = asyncio.Event()
        self._lazy: asyncio.TimerHandle | None = None
        self._resynced = monotonic()
        self._domains, self._nodes_version = Domains(), -1
        self._candidates: dict[PodGroupKey, Candidate] = {}
        """That each group is part of."""
        self._reasons: dict[PodGroupKey, Hold | GroupReason] = {}
        self.cycle: SchedulingCycle | None = None
        """The last one, for the detailed messages of its holds."""
        self._gang_groups: GangGroupMemo = {}
        """Evaluations of GangGroups in this round: the same for each gang."""
        self._most_pods: dict[PodGroupKey, tuple[int, tuple[PodShape, ...]]] = {}
        """Of groups that are being scheduled: the generation, and its pods when there were most of them."""

    # --- Changes -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """From now on this replica admits groups; all of them are dirty."""
        self._started = True
        self._dirty.update(self._cache.keys())
        self._work.set()

    def mark_dirty(self, key: PodGroupKey | None, *, lazy: bool = False) -> None:
        """A group has changed, or (None) capacity has, which matters only while a group waits for it.

        `lazy`: no admission can follow from the change alone. On a standby all changes are dropped.
        """
        if not self._started or (key is None and not self.waiting):
            return
        if key is not None:
            self._dirty.add(key)
        if not lazy:
            self._work.set()
        elif self._lazy is None:
            self._lazy = asyncio.get_running_loop().call_later(LAZY_SECONDS, self._work.set)

    def set_reason(self, key: PodGroupKey, why: Hold | GroupReason | None) -> None:
        """Sets why a group is pending; None: it is not, or there is no reason to report."""
        before = self._reasons.pop(key, None)
        if why is not None:
            self._reasons[key] = why
        if _text(before) != _text(why):
            same = before is not None and why is not None and before.reason == why.reason
            self._on_reason(key, MESSAGE_SECONDS if same else 0.0)

    def set_reasons(self, candidate: Candidate, why: Hold | GroupReason | None) -> None:
        """The same for all gangs of a candidate."""
        for request in candidate.requests:
            self.set_reason(request.key, why)

    def set_faulty(self, key: PodGroupKey, error: Exception) -> None:
        """An unexpected exception about one group must not stop the others: it stays pending, and is retried."""
        self._dirty |= self._drop_candidate(key)
        message = f"cannot be evaluated, which is a bug of jobset-gate that its log has more of: {error!r}"
        why = GroupReason(reason=names.REASON_INVALID_GROUP, message=message[:MAX_FAULT_MESSAGE])
        if _text(self._reasons.get(key)) != _text(why):
            _log.error("group not evaluated", group=key.path, error=repr(error), exc_info=error)
        self.set_reason(key, why)

    def set_yielding(self, keys: set[PodGroupKey]) -> None:
        """These admitted groups have to make room; the new ones are reported to `on_reason`."""
        new, self.must_yield = keys - self.must_yield, frozenset(keys)
        for key in new:
            self._on_reason(key, 0.0)

    # --- Queries -----------------------------------------------------------------------------------------------------

    def why_pending(self, key: PodGroupKey) -> Hold | GroupReason | None:
        """Why a group is pending; None: not known, or it is admitted."""
        why = self._reasons.get(key)
        return self.cycle.explain(why) if isinstance(why, Hold) and self.cycle is not None else why

    def longest_wait(self, now: float) -> float:
        """Seconds since a candidate could have been admitted, at most; 0 if there is none."""
        return max((now - it.ready_since for it in self.waiting.values() if not it.backing_off), default=0.0)

    def is_current(self, candidate: Candidate) -> bool:
        """Whether no gang of a candidate has changed since it was evaluated."""
        return candidate.key in self.waiting and not any(it.key in self._dirty for it in candidate.requests)

    def candidate(self, key: PodGroupKey, now: float) -> Candidate | None:
        """The candidate of a group as of this moment; None: it may not be admitted any more."""
        seen = self._cache.snapshot(key)
        answer = None if seen is None else self._evaluator.evaluate(seen, self._domains, now)
        return answer if isinstance(answer, Candidate) else None

    async def wait(self) -> None:
        """Returns when a group is dirty, or evaluations are due."""
        with suppress(TimeoutError):
            async with asyncio.timeout(RESYNC_SECONDS):
                await self._work.wait()

    # --- Evaluation --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Starts a round: from now on a change asks for another one."""
        self._work.clear()
        if self._lazy is not None:
            self._lazy.cancel()
            self._lazy = None
        if monotonic() - self._resynced >= RESYNC_SECONDS:
            self._resynced = monotonic()
            self._dirty.update(self._reasons, self.admitted)
            kept = {request.key for groups in self.admitted.values() for it in groups for request in it.requests}
            self._most_pods = {key: known for key, known in self._most_pods.items() if key in kept | self._dirty}

    def take_dirty(self) -> set[PodGroupKey]:
        """The groups to evaluate."""
        if self._nodes_version != self._cache.nodes.nodes_version:
            self._nodes_version = self._cache.nodes.nodes_version
            self._domains = Domains(self._cache.nodes.node_infos())
            self._dirty.update(self._cache.keys())
        changed, self._dirty = self._dirty, set()
        self._gang_groups = {}
        return changed

    def evaluate_group(self, key: PodGroupKey, now: float) -> None:
        """Updates the candidate, the reason and the reservations of a group."""
        try:
            self._evaluate(key, now)
        except Exception as error:  # noqa: BLE001 - as in `set_faulty`
            self.set_faulty(key, error)

    # --- Details -----------------------------------------------------------------------------------------------------

    def _evaluate(self, key: PodGroupKey, now: float) -> None:
        seen = self._cache.snapshot(key)
        reserved = self._reservations(seen, now)
        self.admitted.pop(key, None)
        if reserved:
            self.admitted[key] = reserved
        if seen is None and key in self._most_pods:
            self._dirty.update(self.admitted)  # one of them may be of the same decision, and keeps its room
        others = self._drop_candidate(key)
        answer = None if seen is None else self._evaluator.evaluate(seen, self._domains, now, self._gang_groups)
        if isinstance(answer, Candidate):
            self.waiting[answer.key] = answer
            self._candidates |= dict.fromkeys((it.key for it in answer.requests), answer)
        else:
            self.set_reason(key, answer)
            self._dirty |= others

    def _drop_candidate(self, key: PodGroupKey) -> set[PodGroupKey]:
        """Returns the other gangs of the candidate."""
        candidate = self._candidates.pop(key, None)
        if candidate is None or self.waiting.get(candidate.key) is not candidate:
            return set()
        del self.waiting[candidate.key]
        return {it.key for it in candidate.requests if it.key != key}

    def _reservations(self, seen: GroupSnapshot | None, now: float) -> tuple[AdmittedGroup, ...]:
        """The room that other groups have to leave for this one."""
        if seen is None or not self._reserves:
            return ()
        self._remember_pods(seen)
        here = reserved_for(seen, self._cache.nodes.has_pod, self._domains, now, self._pods_before(seen.group.key))
        return (*here, *reserved_for_absent(seen, self._cache.snapshot, self._pods_before, self._domains))

    def _pods_before(self, key: PodGroupKey) -> tuple[PodShape, ...]:
        return self._most_pods[key][1] if key in self._most_pods else ()

    def _remember_pods(self, seen: GroupSnapshot) -> None:
        record, key = seen.record, seen.group.key
        if record is None or not is_being_scheduled(record):
            self._most_pods.pop(key, None)
            return
        living = living_shapes(seen, self._domains)
        known = self._most_pods.get(key, (0, ()))
        if known[0] != record.generation or _count(living) >= _count(known[1]):
            self._most_pods[key] = record.generation, living


def _count(shapes: Iterable[PodShape]) -> int:
    return sum(it.count for it in shapes)


def _text(why: Hold | GroupReason | None) -> tuple[str, str] | None:
    return None if why is None else (why.reason, why.message)
