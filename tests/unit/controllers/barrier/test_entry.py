"""The cache joins the pods of a start group into a gang when a reader needs it, and enqueues it as any other (K5)."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.barrier.cache import LATE_POD_DELAY, PROGRESS_DELAY, GangCache
from jobset_gate.barrier.model import ConfigMapSeen, GangKey, PodSeen
from jobset_gate.runtime.store import ObjectChange
from jobset_gate.sources import startgroup
from tests.fakes.start_group_controller import NAME, OWNER, PASSED, RING, RUNS, SPACE, addressed, member, read_member
from tests.fakes.wire_objects import Json, read_config_map


class RingCache:
    """A cache and what it asked for."""

    def __init__(self) -> None:
        self.now: list[GangKey] = []
        self.later: list[float] = []
        self.cache = GangCache(self.now.append, lambda _, seconds: self.later.append(seconds))
        self._pods: dict[str, PodSeen] = {}
        self._config_map: ConfigMapSeen | None = None

    def show(self, *bodies: Json) -> None:
        for body in bodies:
            new = read_member(body)
            self.cache.on_pod(ObjectChange((SPACE, new.name), self._pods.get(new.name), new))
            self._pods[new.name] = new

    def remove(self, *names: str) -> None:
        for name in names:
            self.cache.on_pod(ObjectChange((SPACE, name), self._pods.pop(name), None))

    def show_config_map(self, **data: str) -> None:
        meta = {"name": NAME, "namespace": SPACE, "uid": "cm", "labels": {"jobset-gate.dev/gate": "true"}}
        seen = read_config_map({"metadata": meta, "data": data})
        self.cache.on_config_map(ObjectChange((SPACE, NAME), self._config_map, seen))
        self._config_map = seen

    def asked(self) -> tuple[int, list[float]]:
        """How often at once, and after how many seconds, since the last time."""
        found = len(self.now), list(self.later)
        self.now.clear()
        self.later.clear()
        return found


@pytest.fixture
def ring() -> RingCache:
    return RingCache()


def test_the_pods_are_the_workload(ring: RingCache) -> None:
    assert list(ring.cache.keys()) == []
    ring.show(member("a", RUNS))
    assert list(ring.cache.keys()) == [RING]
    workload = ring.cache.get_workload(RING)
    assert workload is not None
    assert (workload.uid, workload.shown_name) == (OWNER, "ring")
    ring.remove("a")
    assert (ring.cache.get_workload(RING), list(ring.cache.keys()), len(ring.cache)) == (None, [], 0)


def test_an_event_of_a_pod_gathers_nothing(ring: RingCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs the same in a gang of ten thousand; only who asks for the gang pays, and once."""
    gathered: list[int] = []

    def gather(*args: Any) -> Any:
        gathered.append(1)
        return real(*args)

    real = startgroup.gather
    monkeypatch.setattr(startgroup, "gather", gather)
    for name in ("a", "b", "c"):
        ring.show(member(name, RUNS))
    ring.cache.last_workload(RING)
    assert (gathered, len(list(ring.cache.keys()))) == ([], 1)
    ring.cache.snapshot(RING)
    ring.cache.peek(RING)
    ring.cache.get_workload(RING)
    assert gathered == [1]


def test_a_config_map_is_known_before_the_pods_that_a_list_shows_later(ring: RingCache) -> None:
    ring.show_config_map(attempt="1", members="a", verdict=f"release {OWNER} 1 0 AllPodsStarted\n")
    assert list(ring.cache.keys()) == []
    ring.show(member("a", RUNS))
    seen = ring.cache.snapshot(RING)
    assert seen is not None
    assert seen.remembered == ring.cache.get_verdict(RING) is not None


def test_a_pod_that_comes_late_to_a_later_attempt_is_answered_soon(ring: RingCache) -> None:
    """Nothing marks it with that attempt."""
    ring.show(member("a", PASSED))
    ring.show_config_map(attempt="2", members="a", verdict=f"release {OWNER} 2 0 AllPodsStarted\n")
    ring.cache.snapshot(RING)
    ring.asked()
    ring.show(member("b", RUNS))
    assert ring.asked() == (0, [LATE_POD_DELAY])
    ring.show(member("c", RUNS, notes=addressed("c", 2)))
    assert ring.asked() == (0, [PROGRESS_DELAY])


def test_a_pod_that_another_owner_adopted_is_in_its_gang(ring: RingCache) -> None:
    ring.show(member("a", RUNS), member("b", RUNS))
    theirs = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "ring", "uid": "second", "controller": True}
    ring.show(member("b", RUNS, ownerReferences=[theirs]))
    assert {key.name for key in list(ring.cache.keys())} == {"ring.owner-uid", "ring.second"}
    found = ring.cache.find_pod(SPACE, "b")
    assert found is not None
    assert found[0].name == "ring.second"
