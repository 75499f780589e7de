"""Old news and new."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from jobset_gate.runtime.store import MAX_TOMBSTONES, ObjectChange, ObjectVersion, Store, is_later


@dataclass(frozen=True)
class Meta:
    name: str
    resource_version: str
    uid: str = "u"
    namespace: str = "ns"


def tell(store: Store[str], meta: Meta, model: str) -> ObjectChange[str] | None:
    return store.put(meta, model) if store.is_newer(meta) else None


def test_versions_are_compared_as_numbers_not_as_text() -> None:
    assert is_later("10", "9")
    assert not is_later("9", "10")
    assert not is_later("9", "9")


def test_versions_that_are_no_numbers_are_news_when_they_differ() -> None:
    assert is_later("b", "a")
    assert is_later("a", "b")
    assert not is_later("a", "a")


def test_an_object_of_no_interest_is_remembered_so_that_its_past_does_not_come_back() -> None:
    store: Store[str] = Store()
    assert store.put(Meta("a", "5"), None) is None
    assert tell(store, Meta("a", "4"), "old") is None
    assert tell(store, Meta("a", "6"), "new") == ObjectChange(("ns", "a"), None, "new")


def test_a_deletion_of_an_unknown_object_is_remembered_too() -> None:
    """Deletion first, then the creation: reordered."""
    store: Store[str] = Store()
    assert store.remove(Meta("a", "6")) is None
    assert tell(store, Meta("a", "5"), "x") is None


def test_what_left_the_selector_may_come_back_and_an_echo_of_its_leaving_changes_nothing() -> None:
    """The watch tells it as deleted; uid and name are the same afterwards."""
    store: Store[str] = Store()
    tell(store, Meta("a", "5"), "x")
    leaving = Meta("a", "6")
    store.remove(leaving)
    assert tell(store, Meta("a", "7"), "y") == ObjectChange(("ns", "a"), None, "y")
    assert store.remove(leaving) is None
    assert dict(store.models) == {("ns", "a"): "y"}


def test_a_deletion_that_carries_the_last_known_version_is_one() -> None:
    store: Store[str] = Store()
    tell(store, Meta("a", "5"), "x")
    assert store.remove(Meta("a", "5")) == ObjectChange(("ns", "a"), "x", None)


def test_a_deletion_that_skips_a_generation_removes_what_was_before_it() -> None:
    store: Store[str] = Store()
    tell(store, Meta("a", "5", uid="first"), "x")
    assert store.remove(Meta("a", "9", uid="second")) == ObjectChange(("ns", "a"), "x", None)


def test_an_echo_from_before_the_list_is_no_news() -> None:
    store: Store[str] = Store()
    store.replace({("ns", "a"): (ObjectVersion("u", "5"), "x")}, "10")
    assert tell(store, Meta("b", "7", uid="b"), "x") is None
    assert store.remove(Meta("a", "9")) is None
    assert dict(store.models) == {("ns", "a"): "x"}


def test_a_list_tells_deletions_first_and_of_the_rest_only_what_changed() -> None:
    store: Store[str] = Store()
    store.replace({("ns", name): (ObjectVersion(name, "5"), name) for name in "abc"}, "10")
    changes = store.replace(
        {
            ("ns", "n"): (ObjectVersion("n", "12"), "n"),
            ("ns", "b"): (ObjectVersion("b", "11"), "B"),
            ("ns", "c"): (ObjectVersion("c", "5"), "c"),
        },
        "13",
    )
    assert changes == [
        ObjectChange(("ns", "a"), "a", None),
        ObjectChange(("ns", "n"), None, "n"),
        ObjectChange(("ns", "b"), "b", "B"),
    ]


def test_the_memory_of_deletions_is_bounded() -> None:
    store: Store[str] = Store()
    for i in range(MAX_TOMBSTONES + 100):
        store.remove(Meta("a", str(i + 1), uid=f"u{i}"))
    assert len(store._tombstones) == MAX_TOMBSTONES


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=25), st.randoms(use_true_random=False))
def test_any_order_and_any_doubles_of_the_same_events_end_the_same(
    history: list[tuple[str, bool]], rng: random.Random
) -> None:
    truth: dict[str, tuple[str, str]] = {}
    events: list[tuple[Meta, str | None]] = []
    for version, (name, deletes) in enumerate(history, start=1):
        if deletes and name in truth:
            uid, _ = truth.pop(name)
            events.append((Meta(name, str(version), uid=uid), None))
            continue
        uid = truth[name][0] if name in truth else f"uid{version}"
        truth[name] = (uid, f"model{version}")
        events.append((Meta(name, str(version), uid=uid), f"model{version}"))
    events = events + events[::2]
    rng.shuffle(events)
    store: Store[str] = Store()
    for meta, model in events:
        if model is None:
            store.remove(meta)
            continue
        tell(store, meta, model)
    assert {name: model for (_, name), model in store.models.items()} == {name: m for name, (_, m) in truth.items()}
