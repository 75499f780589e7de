"""What becomes of groups that wait (G3)."""

from __future__ import annotations

from controllers.podgroups.pending import MESSAGE_SECONDS, PendingQueue
from jobset_gate import names
from jobset_gate.podgroups.evaluate import GroupEvaluator
from jobset_gate.podgroups.model import Flavor
from jobset_gate.podgroups.preconditions import GroupReason
from tests.fakes.podgroups.filled_cache import FilledCache, later
from tests.fakes.podgroups.objects import TEN_O_CLOCK, key, pod
from tests.fakes.podgroups.sources import GANG, Json

TERMINATING = {"deletionTimestamp": "2026-08-01T10:00:00Z"}
NOW = TEN_O_CLOCK + 100


def listed(name: str, gangs: str) -> Json:
    """Annotations of the one pod of a gang."""
    return {f"{GANG}name": name, f"{GANG}min-available": "1", f"{GANG}groups": gangs}


async def test_all_gangs_of_a_gang_group_wait_again_when_one_of_them_is_no_longer_ready() -> None:
    made = FilledCache()
    gangs = [key(name, Flavor.KOORDINATOR) for name in "ab"]
    for of in gangs:
        made.pods(pod(of.name, of=of, labels={}, notes=listed(of.name, '["team/a","team/b"]')))
    evaluator = GroupEvaluator(made.cache.snapshot, made.cache.group)
    pending = PendingQueue(made.cache, evaluator, lambda *_: None, reserves=True)
    pending.start()
    for of in pending.take_dirty():
        pending.evaluate_group(of, NOW)
    assert len(pending.waiting) == 1
    gone = pod("b", of=gangs[1], labels={}, notes=listed("b", '["team/a","team/b"]'), meta=TERMINATING)
    made.pods(later(gone))
    pending.mark_dirty(gangs[1])
    while dirty := pending.take_dirty():
        for of in dirty:
            pending.evaluate_group(of, NOW)
    assert pending.waiting == {}
    reasons = {of.name: why.reason for of in gangs if (why := pending.why_pending(of)) is not None}
    assert reasons == {"a": names.REASON_WAITING_FOR_GANG_GROUP, "b": names.REASON_GATHERING}


async def test_for_another_message_with_the_same_reason_a_group_is_reconciled_later() -> None:
    """What a group lacks changes with every pod that is bound."""
    made, delays = FilledCache(), list[float]()
    evaluator = GroupEvaluator(made.cache.snapshot, made.cache.group)
    pending = PendingQueue(made.cache, evaluator, lambda _, delay: delays.append(delay), reserves=True)
    capacity, behind = names.REASON_WAITING_FOR_CAPACITY, names.REASON_BEHIND_OTHER
    for reason, message in ((capacity, "4 free"), (capacity, "4 free"), (capacity, "3 free"), (behind, "3 free")):
        pending.set_reason(key("g"), GroupReason(reason=reason, message=message))
    assert delays == [0.0, MESSAGE_SECONDS, 0.0]
