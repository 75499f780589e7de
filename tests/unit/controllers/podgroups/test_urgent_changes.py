"""Which changes of pods have their group read at once, and what becomes of those that wait (G3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from controllers.podgroups.pending import MESSAGE_SECONDS, PendingQueue
from jobset_gate import names
from jobset_gate.podgroups.evaluate import GroupEvaluator
from jobset_gate.podgroups.model import Flavor
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionMode, AdmissionState, encode_record
from tests.fakes.podgroups.cluster import asking
from tests.fakes.podgroups.filled_cache import FilledCache, later
from tests.fakes.podgroups.objects import TEN_O_CLOCK, key, pod, pod_group, record
from tests.fakes.podgroups.snapshots import bound, opened
from tests.fakes.podgroups.sources import GANG, Json

G = key()
TERMINATING = {"deletionTimestamp": "2026-08-01T10:00:00Z"}


def urgent(cache: FilledCache, *pods: Json) -> list[bool]:
    """Of the changes that these pods make; the group is merged before and after, as its readers do."""
    cache.cache.snapshot(G)
    cache.effects.clear()
    cache.pods(*pods)
    cache.cache.snapshot(G)
    return [urgent for key, urgent in cache.effects if key == G]


def admitted(*pods: Json, how: AdmissionMode = AdmissionMode.FIT, **more: Any) -> FilledCache:
    """A group of three that was admitted with these pods."""
    text = encode_record(msgspec.structs.replace(record((G, 1), **more), how=how))
    return FilledCache().pod_groups(pod_group(notes={names.POD_GROUP_RECORD: text})).pods(*pods)


def test_only_the_pod_that_completes_a_group_matters_to_admission() -> None:
    cache = FilledCache().pod_groups(pod_group()).pods(pod("a"))
    assert [urgent(cache, pod(name)) for name in "bcd"] == [[False], [True], [True]]


def test_every_pod_matters_where_more_than_their_number_is_missing() -> None:
    cache = FilledCache().pods(pod("a"))
    assert urgent(cache, pod("b")) == [True], "no PodGroup"
    cache.pod_groups(pod_group(spec={"minMember": -1}))
    assert urgent(cache, pod("c")) == [True], "an invalid one"


def test_a_pod_of_an_admitted_group_is_not_urgent_until_the_minimum_is_bound() -> None:
    cache = admitted(*map(pod, "abc"))
    assert urgent(cache, *(later(opened(name)) for name in "abc")) == [False] * 3
    assert urgent(cache, later(bound("a"), "210"), later(bound("b"), "211")) == [False] * 2
    assert urgent(cache, later(bound("c"), "212")) == [True]


@pytest.mark.parametrize(
    ("before", "change", "more"),
    [
        pytest.param([bound("a"), opened("b")], opened("b", status={"phase": "Failed"}), {}, id="failed"),
        pytest.param([bound("a"), opened("b")], bound("a", meta=TERMINATING), {}, id="terminating"),
        pytest.param([bound("a")], pod("new"), {}, id="added"),
        pytest.param([opened("a")], opened("a", spec=asking("4")), {}, id="larger"),
        pytest.param([opened("a")], pod("a"), {}, id="gated again"),
        pytest.param([opened("a")], bound("a"), {"stage": AdmissionState.ROLLING_BACK}, id="evicted"),
        pytest.param([opened("a")], bound("a"), {"stage": AdmissionState.CLOSED}, id="closed"),
        pytest.param([pod("a")], opened("a"), {"how": AdmissionMode.NATIVE}, id="placed by the scheduler as a whole"),
    ],
)
def test_anything_else_about_a_group_with_a_record_is_urgent(before: Sequence[Json], change: Json, more: Any) -> None:
    assert urgent(admitted(*before, **more), later(change)) == [True]


# --- Groups that wait -------------------------------------------------------------------------------------------------

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
