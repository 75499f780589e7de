"""What is free on each node: allocatable less the requests of bound pods."""

from __future__ import annotations

import pytest

from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.settings import Groups
from tests.fakes.podgroups.filled_cache import FilledCache
from tests.fakes.podgroups.objects import node, pod
from tests.fakes.podgroups.sources import Json
from tests.unit.controllers.podgroups.test_cache import later


def bound(name: str, on: str = "n", cpu: str = "1", uid: str = "") -> Json:
    """A pod of nobody's group, on a node."""
    asked = {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}
    return pod(name, labels={}, held="", gates=(), node=on, spec=asked, uid=uid)


def free(made: FilledCache, of: str = "cpu") -> dict[str, int]:
    """By node, in thousandths."""
    return {room.node.name: room.free[of] for room in made.cache.nodes.node_infos()}


def test_a_node_is_free_but_for_what_is_bound_to_it() -> None:
    made = FilledCache().nodes(node("b", cpu="4"), node("a", cpu="8"))
    made.pods(bound("p", "a"), bound("q", "a", "500m"))
    assert free(made) == {"a": 6500, "b": 4000}
    assert [room.node.name for room in made.cache.nodes.node_infos()] == ["a", "b"]
    made.nodes(node("aa", cpu="1"))
    assert [room.node.name for room in made.cache.nodes.node_infos()] == ["a", "aa", "b"]
    assert free(made, "pods") == {"a": 108_000, "aa": 110_000, "b": 110_000}


def test_what_belongs_to_a_node_is_taken_for_good() -> None:
    made = FilledCache().nodes(node("n", cpu="4"))
    daemon = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True}]}
    agent = bound("agent", cpu="1")
    made.pods(bound("p"), agent | {"metadata": agent["metadata"] | daemon})
    (room,) = made.cache.nodes.node_infos()
    assert room.empty is not None
    assert (room.free["cpu"], room.empty["cpu"], room.empty["pods"]) == (2000, 3000, 109_000)


def test_a_terminating_pod_still_counts_until_it_is_gone_or_has_finished() -> None:
    made = FilledCache().nodes(node("n", cpu="4"))
    first, second = bound("p"), bound("q")
    made.pods(first, second)
    made.pods(later(first, metadata={"deletionTimestamp": "2026-08-01T10:00:00Z"}))
    assert free(made) == {"n": 2000}
    made.pods(later(second, status={"phase": "Succeeded"}))
    assert free(made) == {"n": 3000}
    assert (made.cache.nodes.has_pod("uid-p"), made.cache.nodes.has_pod("uid-q")) == (True, False)
    made.remove(PODS, later(first, version="300"))
    assert free(made) == {"n": 4000}


def test_a_resize_counts_once_it_is_in_the_spec() -> None:
    made = FilledCache().nodes(node("n", cpu="4"))
    body = bound("p")
    made.pods(body, later(body, spec=bound("p", cpu="3")["spec"]))
    assert free(made) == {"n": 1000}


# --- Pods of groups, which the other watch of pods leaves out -------------------------------------------------------


def member(name: str = "p") -> Json:
    """A pod of a group, opened and bound."""
    return pod(name, gates=(), node="n", spec=bound(name)["spec"])


def test_a_pod_of_a_group_takes_room_from_when_it_is_bound_until_it_has_finished() -> None:
    made = FilledCache().nodes(node("n", cpu="4"))
    held = member()
    made.pods(later(held, version="150", spec={"nodeName": ""}))
    assert free(made) == {"n": 4000}
    made.pods(held | {"metadata": held["metadata"] | {"resourceVersion": "200"}})
    assert (free(made), made.cache.nodes.has_pod("uid-p")) == ({"n": 3000}, True)
    made.take_calls()
    made.pods(later(held, version="201", status={"phase": "Failed"}))
    assert (free(made), made.cache.nodes.has_pod("uid-p")) == ({"n": 4000}, False)
    assert None in made.take_calls()[1]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("namespace", [None, "team", "other"])
def test_a_pod_whose_label_comes_off_keeps_its_room_whichever_watch_tells_first(
    first: int, namespace: str | None
) -> None:
    made = FilledCache(namespace=namespace).nodes(node("n", cpu="4"))
    feeds = [feed for feed in made.feeds if feed.kind.resource == PODS]
    one, other = feeds[first], feeds[1 - first]
    labelled = member()
    made.pods(labelled)
    assert free(made) == {"n": 3000}
    bare = later(labelled)
    bare["metadata"]["labels"] = {}
    for feed in (one, other):
        feed.put(bare)
    assert (free(made), made.cache.nodes.has_pod("uid-p")) == ({"n": 3000}, True)
    again = later(labelled, version="300")
    for feed in (one, other):
        feed.put(again)
    assert (free(made), made.cache.nodes.has_pod("uid-p")) == ({"n": 3000}, True)
    made.remove(PODS, later(labelled, version="400"))
    assert (free(made), made.cache.nodes.has_pod("uid-p")) == ({"n": 4000}, False)


# --- Effects ---------------------------------------------------------------------------------------------------------


def test_only_changes_of_room_have_a_capacity_effect() -> None:
    made = FilledCache().nodes(node("n", cpu="4"))
    assert made.take_calls() == (set(), {None})
    beat = node("n", cpu="4")
    made.nodes(beat | {"metadata": beat["metadata"] | {"resourceVersion": "8"}})
    assert made.take_calls() == (set(), set()), "a heartbeat"
    body = bound("p")
    made.pods(body)
    assert made.take_calls() == (set(), {None})
    made.pods(later(body, status={"phase": "Running"}))
    assert made.take_calls() == (set(), set())
    made.pods(later(body, version="201", status={"phase": "Succeeded"}))
    assert made.take_calls() == (set(), {None})
    tainted = node("n", cpu="4")
    tainted["spec"] = {"unschedulable": True}
    made.nodes(tainted | {"metadata": tainted["metadata"] | {"resourceVersion": "9"}})
    assert made.take_calls() == (set(), {None})


def test_nodes_that_have_not_changed_are_the_same_objects() -> None:
    """A cycle compares a thousand of them."""
    made = FilledCache().nodes(node("a", cpu="4"), node("b", cpu="4"))
    first = made.cache.nodes.node_infos()
    assert made.cache.nodes.node_infos() is first
    made.pods(bound("p", "a"))
    second = made.cache.nodes.node_infos()
    assert second[1] is first[1]
    assert second[0].node is first[0].node


def test_without_a_capacity_check_nodes_and_bound_pods_are_not_kept() -> None:
    made = FilledCache(Groups(capacity_check=CapacityCheck.OFF)).nodes(node("n", cpu="4"))
    made.pods(bound("p"), member("m"))
    assert (made.cache.nodes.node_infos(), made.cache.nodes.has_pod("uid-p")) == ((), False)
    assert None not in made.take_calls()[1]
