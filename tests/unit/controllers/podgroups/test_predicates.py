"""What a change means for its group: whether the reconciler and the scheduler read the group at once or later (G3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from controllers.podgroups.pending import MESSAGE_SECONDS, PendingQueue
from controllers.podgroups.predicates import Effect
from jobset_gate import names
from jobset_gate.kube.resources import PODGROUPS_PLUGINS
from jobset_gate.podgroups.evaluate import GroupEvaluator
from jobset_gate.podgroups.model import Flavor, PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionMode, AdmissionState, encode_record
from jobset_gate.podgroups.snapshot import GroupSnapshot
from tests.fakes.podgroups.filled_cache import FilledCache
from tests.fakes.podgroups.objects import TEN_O_CLOCK, key, pod, pod_group, record
from tests.fakes.podgroups.snapshots import bound, opened
from tests.fakes.podgroups.sources import GANG, Json, koordinator

G = key()
LARGER = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "4"}}}]}
TERMINATING = {"deletionTimestamp": "2026-08-01T10:00:00Z"}


def versioned(body: Json, version: int = 300, **meta: Any) -> Json:
    return body | {"metadata": body["metadata"] | {"resourceVersion": str(version)} | meta}


def effects(cache: FilledCache, of: PodGroupKey = G) -> set[Effect]:
    """Of all changes since the last time; the group is merged, as its readers do."""
    cache.cache.snapshot(of)
    found = {effect for key, effect in cache.effects if key == of}
    cache.effects.clear()
    return found


def admitted(*pods: Json, **more: Any) -> FilledCache:
    """A group of three that was admitted with these pods."""
    cache = FilledCache().pod_groups(pod_group(notes={names.POD_GROUP_RECORD: encode_record(record((G, 1), **more))}))
    cache.pods(*pods)
    effects(cache)
    return cache


def test_only_the_pod_that_completes_a_group_matters_to_admission() -> None:
    cache = FilledCache().pod_groups(pod_group())
    found = []
    for name in "abcd":
        cache.pods(pod(name))
        found.append(effects(cache))
    assert found[1:] == [{Effect.GATHERING}, {Effect.CHANGED}, {Effect.CHANGED}]


def test_every_pod_matters_where_more_than_their_number_is_missing() -> None:
    cache = FilledCache().pods(pod("a"))
    effects(cache)
    cache.pods(pod("b"))
    assert effects(cache) == {Effect.CHANGED}, "no PodGroup"
    cache.pod_groups(pod_group(spec={"minMember": -1}))
    effects(cache)
    cache.pods(pod("c"))
    assert effects(cache) == {Effect.CHANGED}, "an invalid one"


def test_the_other_gangs_of_a_gang_group_are_reconciled_for_every_pod() -> None:
    cache = FilledCache()
    a, b = key("a", Flavor.KOORDINATOR), key("b", Flavor.KOORDINATOR)
    said = koordinator("a", min_available="3", groups='["team/a","team/b"]')
    for number in range(2):
        effects(cache, a)
        cache.pods(pod(f"a{number}", of=a, labels={}, notes=said))
    assert {(b, Effect.DETAIL), (a, Effect.CHANGED)} <= set(cache.effects)


def test_pods_of_an_admitted_group_are_progress_until_the_minimum_is_bound() -> None:
    cache = admitted(*map(pod, "abc"))
    cache.pods(*(versioned(opened(name), 200) for name in "abc"))
    assert effects(cache) == {Effect.PROGRESS}
    cache.pods(versioned(bound("a"), 210), versioned(bound("b"), 211))
    assert effects(cache) == {Effect.PROGRESS}
    cache.pods(versioned(bound("c"), 212))
    assert effects(cache) == {Effect.MINIMUM_BOUND}


@pytest.mark.parametrize(
    ("before", "change"),
    [
        ([bound("a"), opened("b")], versioned(opened("b", status={"phase": "Failed"}))),
        ([bound("a"), opened("b")], versioned(bound("a"), 300, **TERMINATING)),
        ([bound("a")], pod("new")),
        ([opened("a")], versioned(opened("a", spec=LARGER))),
        ([opened("a")], versioned(pod("a"))),
    ],
    ids=["failed", "terminating", "added", "larger", "gated again"],
)
def test_anything_else_about_an_admitted_group_is_a_change(before: Sequence[Json], change: Json) -> None:
    cache = admitted(*before)
    cache.pods(change)
    assert effects(cache) == {Effect.CHANGED}


@pytest.mark.parametrize("more", [{"stage": AdmissionState.ROLLING_BACK}, {"stage": AdmissionState.CLOSED}], ids=str)
def test_no_pod_of_a_group_that_is_not_admitted_is_progress(more: Json) -> None:
    cache = admitted(opened("a"), **more)
    cache.pods(versioned(bound("a")))
    assert effects(cache) == {Effect.CHANGED}


def test_nor_of_one_that_the_scheduler_places_as_a_whole() -> None:
    text = encode_record(record((G, 1))).replace(f'"{AdmissionMode.FIT.value}"', f'"{AdmissionMode.NATIVE.value}"')
    cache = FilledCache().pod_groups(pod_group(notes={names.POD_GROUP_RECORD: text}))
    cache.pods(pod("a"))
    effects(cache)
    cache.pods(versioned(opened("a")))
    assert effects(cache) == {Effect.CHANGED}


def test_the_informers_event_of_our_own_write_has_no_effect() -> None:
    cache = FilledCache().pod_groups(pod_group())
    cache.pods(pod("a"))
    effects(cache)
    body = pod_group(version="50", notes={names.POD_GROUP_RECORD: encode_record(record((G, 1)))})
    cache.respond(PODGROUPS_PLUGINS, body)
    assert effects(cache) == {Effect.RECORDED}
    cache.pod_groups(body)
    assert effects(cache) == set()


# --- Only dirty groups are evaluated, and each once in a round --------------------------------------------------------


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
