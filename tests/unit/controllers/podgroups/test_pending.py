"""Only dirty groups are evaluated, and each once in a round (G3)."""

from __future__ import annotations

from collections import Counter

from controllers.podgroups.pending import MESSAGE_SECONDS, PendingQueue
from jobset_gate import names
from jobset_gate.podgroups.evaluate import GroupEvaluator
from jobset_gate.podgroups.model import Flavor
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.snapshot import GroupSnapshot
from tests.fakes.podgroups.filled_cache import FilledCache
from tests.fakes.podgroups.objects import TEN_O_CLOCK, key, pod
from tests.fakes.podgroups.sources import GANG

GANGS = 12
NOW = TEN_O_CLOCK + 100


class EvaluationCounter:
    """Counts evaluations: each reads the quota once for every gang."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()

    def __call__(self, seen: GroupSnapshot) -> str:
        self.of[seen.group.key.name] += 1
        return ""


async def test_a_gang_group_is_evaluated_once_whatever_gangs_have_changed() -> None:
    made, asked = FilledCache(), EvaluationCounter()
    listed = [f"g{number}" for number in range(GANGS)]
    everybody = "[" + ",".join(f'"team/{it}"' for it in listed) + "]"
    for name in listed:
        notes = {f"{GANG}name": name, f"{GANG}min-available": "1", f"{GANG}groups": everybody}
        made.pods(pod(f"{name}-0", of=key(name, Flavor.KOORDINATOR), labels={}, notes=notes))
    evaluator = GroupEvaluator(made.cache.snapshot, made.cache.group, quota_shortage=asked)
    pending = PendingQueue(made.cache, evaluator, lambda *_: None, reserves=True)
    pending.start()
    for changed in (listed, listed[:1]):
        for name in changed:
            pending.mark_dirty(key(name, Flavor.KOORDINATOR))
        dirty = pending.take_dirty()
        assert {it.name for it in dirty} == set(listed)
        assert pending.take_dirty() == set()
        asked.of.clear()
        for it in dirty:
            pending.evaluate_group(it, NOW)
        assert asked.of == dict.fromkeys(listed, 1)
        (candidate,) = pending.waiting.values()
        assert {it.key.name for it in candidate.requests} == set(listed)


async def test_for_another_message_with_the_same_reason_a_group_is_reconciled_later() -> None:
    """What a group lacks changes with every pod that is bound."""
    made, delays = FilledCache(), list[float]()
    evaluator = GroupEvaluator(made.cache.snapshot, made.cache.group)
    pending = PendingQueue(made.cache, evaluator, lambda _, delay: delays.append(delay), reserves=True)
    capacity, behind = names.REASON_WAITING_FOR_CAPACITY, names.REASON_BEHIND_OTHER
    for reason, message in ((capacity, "4 free"), (capacity, "4 free"), (capacity, "3 free"), (behind, "3 free")):
        pending.set_reason(key("g"), GroupReason(reason=reason, message=message))
    assert delays == [0.0, MESSAGE_SECONDS, 0.0]
