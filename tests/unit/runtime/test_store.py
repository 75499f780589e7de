"""The informer's store: no older event, response or list overwrites a newer one, and how old the cache may be."""

import asyncio
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.store import MAX_TOMBSTONES, ObjectChange, ObjectVersion, Staleness, Store, is_later
from tests.fakes.informer_harness import SampleMeta, SampleObject

A = ("ns", "a")
Samples = Store[SampleObject, str]


def new_store() -> Samples:
    return Store(lambda thing: thing.data.get("value"))


@pytest.fixture
def store() -> Samples:
    return new_store()


def meta(version: str, name: str = "a", uid: str = "u") -> SampleMeta:
    return SampleMeta(name, "ns", uid, version)


def thing(version: str, value: str | None, name: str = "a", uid: str = "u") -> SampleObject:
    return SampleObject(meta(version, name, uid), {} if value is None else {"value": value})


def event(store: Samples, version: str, value: str | None, name: str = "a", uid: str = "u") -> object:
    """As the informer applies ADDED and MODIFIED."""
    return store.put(thing(version, value, name, uid))


def test_versions_are_compared_as_numbers_and_others_only_differ() -> None:
    assert is_later("10", "9")
    assert not is_later("9", "10")
    assert not is_later("9", "9")
    assert is_later("b", "a")
    assert is_later("a", "b")
    assert not is_later("a", "a")


def test_an_object_that_convert_leaves_out_is_remembered_by_its_version(store: Samples) -> None:
    assert event(store, "5", None) is None
    assert event(store, "4", "old") is None
    assert event(store, "6", "new") == ObjectChange(A, None, "new")


def test_an_object_that_left_the_selector_may_come_back(store: Samples) -> None:
    """The watch reports it as deleted; uid and name are the same afterwards."""
    event(store, "5", "x")
    left = meta("6")
    store.remove(left)
    assert event(store, "7", "y") == ObjectChange(A, None, "y")
    assert store.remove(left) is None
    assert dict(store.models) == {A: "y"}


@pytest.mark.parametrize("deleted", [meta("5"), meta("9", uid="second")], ids=["same", "next"])
def test_a_deletion_of_the_known_or_a_later_version_removes_it(store: Samples, deleted: SampleMeta) -> None:
    event(store, "5", "x")
    assert store.remove(deleted) == ObjectChange(A, "x", None)


def test_an_event_from_before_the_list_changes_nothing(store: Samples) -> None:
    store.replace({A: (ObjectVersion("u", "5"), "x")}, "10")
    assert event(store, "7", "x", name="b", uid="b") is None
    assert store.remove(meta("9")) is None
    assert dict(store.models) == {A: "x"}


def test_a_list_reports_deletions_first_and_only_what_changed(store: Samples) -> None:
    store.replace({("ns", name): (ObjectVersion(name, "5"), name) for name in "abc"}, "10")
    listed = {"n": ("12", "n"), "b": ("11", "B"), "c": ("5", "c")}
    changes = store.replace(
        {("ns", name): (ObjectVersion(name, version), model) for name, (version, model) in listed.items()}, "13"
    )
    assert changes == [
        ObjectChange(A, "a", None),
        ObjectChange(("ns", "n"), None, "n"),
        ObjectChange(("ns", "b"), "b", "B"),
    ]


def test_the_number_of_tombstones_is_bounded(store: Samples) -> None:
    for i in range(MAX_TOMBSTONES + 100):
        store.remove(meta(str(i + 1), uid=f"u{i}"))
    assert len(store._tombstones) == MAX_TOMBSTONES


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=25), st.randoms(use_true_random=False))
def test_any_order_and_any_repetition_of_the_same_events_end_the_same(
    history: list[tuple[str, bool]], rng: random.Random
) -> None:
    truth: dict[str, tuple[str, str]] = {}
    events: list[tuple[SampleMeta, str | None]] = []
    for version, (name, deletes) in enumerate(history, start=1):
        if deletes and name in truth:
            uid, _ = truth.pop(name)
            events.append((meta(str(version), name, uid), None))
            continue
        uid = truth[name][0] if name in truth else f"uid{version}"
        truth[name] = (uid, f"model{version}")
        events.append((meta(str(version), name, uid), f"model{version}"))
    events = events + events[::2]
    rng.shuffle(events)
    store: Samples = new_store()
    for which, model in events:
        if model is None:
            store.remove(which)
        else:
            store.put(SampleObject(which, {"value": model}))
    assert {name: model for (_, name), model in store.models.items()} == {name: m for name, (_, m) in truth.items()}


def test_a_response_is_in_the_cache_at_once_and_its_event_or_an_older_one_changes_nothing(store: Samples) -> None:
    assert store.observe_object(thing("5", "1")) == "1"
    for version in ("5", "4"):
        assert event(store, version, "old") is None
        assert dict(store.models) == {A: "1"}
    assert store.remove(meta("6")) == ObjectChange(A, "1", None)
    assert store.observe_object(thing("7", None)) is None, "convert leaves it out"


def test_a_response_older_than_the_watch_changes_nothing(store: Samples) -> None:
    event(store, "6", "2")
    assert store.observe_object(thing("5", "1")) == "2"
    store.remove(meta("7"))
    assert store.observe_object(thing("5", "1")) is None
    event(store, "9", "3", uid="second")
    assert store.observe_object(thing("6", "2")) == "3", "of a deleted object of the same name"


def test_not_found_removes_the_version_that_was_known_before_the_request(store: Samples) -> None:
    assert store.observe_absence(A, store.version_of(A)) is None
    event(store, "5", "1")
    known = store.version_of(A)
    assert known == ObjectVersion("u", "5")
    assert store.observe_absence(A, known) is None
    assert event(store, "5", "1") is None
    assert store.remove(meta("6")) is None
    event(store, "8", "2", uid="second")
    assert store.observe_absence(A, known) == "2", "created again while the request was in flight"


def test_a_response_during_a_list_is_not_put_back_by_it(store: Samples) -> None:
    event(store, "5", "1")
    store.begin_list()
    store.observe_object(thing("8", "2"))
    assert store.replace({A: (ObjectVersion("u", "5"), "1")}, "7") == []
    assert dict(store.models) == {A: "2"}
    store.begin_list()
    assert store.replace({}, "3") == [ObjectChange(A, "2", None)], (
        "before a list it counts no more, even if versions fall"
    )


# --- How old it is ----------------------------------------------------------------------------------------------------


UNIX = 1_000_000.0
"""Unix time when the monotonic clock shows 0."""


class Clock:
    """The wall clock of this process, which a user may set."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return UNIX + monotonic() + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def listed(clock: Clock) -> tuple[Staleness, float]:
    """With a list that began now, and Unix time now."""
    it = Staleness(clock)
    it.observe_list(monotonic())
    return it, clock()


async def test_before_the_first_list_nothing_is_there(clock: Clock) -> None:
    it = Staleness(clock)
    assert it.seconds == math.inf
    await asyncio.sleep(7)
    it.observe_list(monotonic() - 5)
    assert it.seconds == pytest.approx(5), "since the list began, not since it was read"


async def test_an_event_is_as_old_as_its_write_whenever_it_arrives(clock: Clock) -> None:
    it, start = await listed(clock)
    await asyncio.sleep(60)
    it.observe_event(start + 5)
    assert it.seconds == pytest.approx(55), "the first event after a minute of silence"
    it.observe_event(start + 59)
    assert it.seconds == pytest.approx(1)
    it.observe_event(start + 30)
    assert it.seconds == pytest.approx(1), "an object that was changed without a date, such as a deleted one"
    await asyncio.sleep(4)
    assert it.seconds == pytest.approx(5)


async def test_a_date_ahead_of_the_clock_is_now(clock: Clock) -> None:
    """Of an API server whose clock is ahead, or of a user: managedFields can be written."""
    it, start = await listed(clock)
    await asyncio.sleep(60)
    it.observe_event(start + 1e9)
    assert it.seconds == pytest.approx(0)
    await asyncio.sleep(3)
    assert it.seconds == pytest.approx(3)


async def test_a_clock_that_is_set_afterwards_makes_nothing_younger(clock: Clock) -> None:
    it, _ = await listed(clock)
    await asyncio.sleep(20)
    clock.ahead = -3600
    assert it.seconds == pytest.approx(20)
