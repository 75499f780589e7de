"""The cache joins pods, PodGroups and records by group, and reports the effect of each change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from jobset_gate import names
from jobset_gate.kube.resources import PODS, RESOURCEQUOTAS
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Flavor, PodGroupKey, group_label
from jobset_gate.podgroups.record import AdmissionMode, AdmissionState, encode_record
from jobset_gate.settings import Groups
from tests.fakes.podgroups.cluster import asking
from tests.fakes.podgroups.filled_cache import FilledCache, later
from tests.fakes.podgroups.objects import TEN_O_CLOCK, key, node, pod, pod_group, record
from tests.fakes.podgroups.snapshots import bound, opened
from tests.fakes.podgroups.sources import KOORDINATOR, PLUGINS, Json

G = key()
KOORD = key(flavor=Flavor.KOORDINATOR)
OPENED = {names.POD_GROUP_OPENED: "1 2026-08-01T10:00:05.000Z"}


# --- Joining ----------------------------------------------------------------


def test_a_group_is_put_together_from_its_pods_and_its_pod_group() -> None:
    made = FilledCache().pods(pod("b"), pod("a")).pod_groups(pod_group(status={"phase": "Pending"}))
    seen = made.snapshot(G)
    assert [it.name for it in seen.members] == ["a", "b"]
    assert (seen.group.minimum, seen.group.present, seen.group.gathered) == (3, 2, False)
    assert (seen.label, seen.created) == (group_label(G), TEN_O_CLOCK - 3600)
    assert seen.pod_group_status == {"phase": "Pending"}
    assert (made.ref(G).api, made.ref(G).uid) == (names.PLUGINS_GROUP, "uid-g")
    assert made.keys() == {G}


# --- Who is a member ----------------------------------------------------------------


def test_a_pod_stays_in_the_group_of_its_label_whatever_it_names_later() -> None:
    moved = (pod(name, labels=labels, held=group_label(G)) for name, labels in (("b", {PLUGINS: "other"}), ("c", {})))
    made = FilledCache().pod_groups(pod_group()).pods(pod("a"), *moved)
    seen = made.snapshot(G)
    assert [(it.name, it.moved) for it in seen.members] == [("a", False), ("b", True), ("c", True)]
    assert (seen.group.present, seen.group.valid, made.keys()) == (3, True, {G})


def test_a_group_whose_pods_have_all_moved_is_known_by_its_pod_group() -> None:
    made = FilledCache().pods(pod("a", labels={}, held=group_label(G)))
    assert made.keys() == set()
    assert [it.name for it in made.cache.unassigned_pods()] == ["a"]
    made.pod_groups(pod_group())
    assert made.keys() == {G}
    assert [it.name for it in made.snapshot(G).members] == ["a"]
    assert made.cache.unassigned_pods() == []


def test_a_label_counts_in_the_namespace_of_its_group_only() -> None:
    """Or a user who may create pods in any namespace could join every group of the cluster."""
    made = FilledCache().pods(pod("a"), pod("b", namespace="other", held=group_label(G)))
    assert [it.namespace for it in made.snapshot(G).members] == ["team"]
    assert [it.namespace for it in made.cache.unassigned_pods()] == ["other"]


def test_an_empty_label_is_no_group() -> None:
    made = FilledCache()
    body = pod("a", held="")
    body["metadata"]["labels"][names.POD_GROUP_LABEL] = ""
    made.pods(body)
    assert (made.keys(), made.cache._members.entries()) == (set(), [])


def test_a_bound_pod_without_our_label_is_an_ungated_member() -> None:
    made = FilledCache().pod_groups(pod_group())
    unheld = pod("c", held="", gates=())
    made.pods(pod("a"), pod("b"), unheld)
    assert made.group(G).present == 2, "it is not bound yet"
    bound = later(unheld, spec={"nodeName": "n"})
    made.pods(bound)
    seen = made.snapshot(G)
    assert (seen.group.present, seen.group.gathered) == (3, True)
    assert [(it.name, it.ungated) for it in seen.members] == [("a", False), ("b", False), ("c", True)]
    made.remove(PODS, later(bound, "300"))
    assert made.group(G).present == 2


def test_only_members_of_the_watched_namespace_count_but_all_pods_use_nodes() -> None:
    made = FilledCache(namespace="team").pods(pod("a", held="", gates=(), node="n", namespace="other"), pod("b"))
    assert made.keys() == {G}
    assert made.cache.nodes.has_pod("uid-a")


# --- PodGroups of three kinds ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "shown"),
    [(names.KEP24_GROUP, key(flavor=Flavor.KEP_24)), (names.PLUGINS_GROUP, G), (names.SIGS_GROUP, KOORD)],
)
def test_a_pod_group_that_no_pod_names_is_shown_once(api: str, shown: PodGroupKey) -> None:
    made = FilledCache().pod_groups(pod_group(spec={"minMember": 2, "minMembers": 2}), api=api)
    assert made.keys() == {shown}
    assert (made.group(shown).minimum, made.group(shown).present) == (2, 0)


def test_a_pod_group_that_koordinators_pods_name_is_theirs() -> None:
    made = FilledCache().pod_groups(pod_group())
    member = pod("a", of=KOORD, labels={KOORDINATOR: "g"})
    made.take_calls()
    made.pods(member)
    assert made.keys() == {KOORD}
    assert made.group(KOORD).minimum == 3
    assert made.take_calls()[0] == {KOORD, G}, "the other one is no group any more"
    made.remove(PODS, later(member))
    assert made.keys() == {G}
    assert made.take_calls()[0] == {KOORD, G}


# --- Effects ----------------------------------------------------------------


def test_a_members_change_has_an_effect_and_what_matters_to_admission_another() -> None:
    made = FilledCache()
    body = pod("a")
    made.pods(body)
    assert made.take_calls() == ({G}, {G})
    made.pods(later(body, "101", metadata={"finalizers": ["x"]}))
    assert made.take_calls() == (set(), set()), "nothing that anybody looks at"
    said = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no"}]}
    made.pods(later(body, "102", status=said))
    assert made.take_calls() == ({G}, set()), "for people only"
    made.pods(later(body, "103", spec={"schedulingGates": []}, metadata={"annotations": OPENED}))
    assert made.take_calls() == ({G}, {G})
    made.remove(PODS, later(body, "104"))
    assert made.take_calls() == ({G}, {G})


def test_a_pod_groups_change_has_an_effect_and_its_version_alone_none() -> None:
    made = FilledCache().pods(pod("a"))
    made.pod_groups(pod_group())
    made.take_calls()
    made.pod_groups(pod_group(version="6"))
    assert made.take_calls() == (set(), set())
    assert made.ref(G).resource_version == "6", "or our next write would be refused"
    made.pod_groups(pod_group(version="7", spec={"minMember": 4}))
    assert made.take_calls() == ({G, KOORD}, {G, KOORD}), "it may be that of any design that reads it"
    assert made.keys() == {G}


def test_quotas_are_kept_by_namespace() -> None:
    made = FilledCache()
    quota = {"metadata": {"name": "q", "namespace": "team", "uid": "q", "resourceVersion": "1"}}
    body: Json = quota | {"spec": {"hard": {"pods": "4"}}, "status": {"hard": {"pods": "4"}, "used": {"pods": "1"}}}
    made.quotas(body)
    assert made.take_calls() == (set(), {None})
    (seen,) = made.cache.quotas("team")
    assert (seen.name, seen.hard, seen.used) == ("q", {"pods": 4000}, {"pods": 1000})
    assert made.cache.quotas("other") == []
    made.quotas(later(body, "2"))
    assert made.take_calls() == (set(), set())
    made.remove(RESOURCEQUOTAS, later(body, "3"))
    assert made.cache.quotas("team") == []


# --- Which changes of pods have their group read at once (G3) ---------------------------------------------------------

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


# --- What is free on each node: allocatable less the requests of bound pods -------------------------------------------


def ungrouped(name: str, on: str = "n", cpu: str = "1") -> Json:
    """A pod of nobody's group, on a node."""
    return pod(name, labels={}, held="", gates=(), node=on, spec=asking(cpu))


def free(made: FilledCache, of: str = "cpu") -> dict[str, int]:
    """By node, in thousandths."""
    return {room.node.name: room.free[of] for room in made.cache.nodes.node_infos()}


def test_a_node_is_free_but_for_what_is_bound_to_it() -> None:
    made = FilledCache().nodes(node("b", cpu="4"), node("a", cpu="8"))
    made.pods(ungrouped("p", "a"), ungrouped("q", "a", "500m"))
    assert free(made) == {"a": 6500, "b": 4000}
    made.nodes(node("aa", cpu="1"))
    assert list(free(made, "pods").items()) == [("a", 108_000), ("aa", 110_000), ("b", 110_000)]


def test_what_belongs_to_a_node_is_taken_for_good() -> None:
    made = FilledCache().nodes(node("n", cpu="4"))
    daemon = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True}]}
    agent = ungrouped("agent", cpu="1")
    made.pods(ungrouped("p"), agent | {"metadata": agent["metadata"] | daemon})
    (room,) = made.cache.nodes.node_infos()
    assert room.empty is not None
    assert (room.free["cpu"], room.empty["cpu"], room.empty["pods"]) == (2000, 3000, 109_000)


def test_a_terminating_pod_still_counts_until_it_is_gone_or_has_finished() -> None:
    made = FilledCache().nodes(node("n", cpu="4"))
    first, second = ungrouped("p"), ungrouped("q")
    made.pods(first, second)
    made.pods(later(first, metadata={"deletionTimestamp": "2026-08-01T10:00:00Z"}))
    assert free(made) == {"n": 2000}
    made.pods(later(second, status={"phase": "Succeeded"}))
    assert free(made) == {"n": 3000}
    assert (made.cache.nodes.has_pod("uid-p"), made.cache.nodes.has_pod("uid-q")) == (True, False)
    made.remove(PODS, later(first, "300"))
    assert free(made) == {"n": 4000}


# --- Effects on capacity ---------------------------------------------------------------------------------------------


def test_only_changes_of_room_have_a_capacity_effect() -> None:
    made = FilledCache().nodes(node("n", cpu="4"))
    assert made.take_calls() == (set(), {None})
    made.nodes(later(node("n", cpu="4"), "8"))
    assert made.take_calls() == (set(), set()), "a heartbeat"
    body = ungrouped("p")
    made.pods(body)
    assert made.take_calls() == (set(), {None})
    made.pods(later(body, status={"phase": "Running"}))
    assert made.take_calls() == (set(), set())
    made.pods(later(body, "201", status={"phase": "Succeeded"}))
    assert made.take_calls() == (set(), {None})
    made.nodes(later(node("n", cpu="4"), "9", spec={"unschedulable": True}))
    assert made.take_calls() == (set(), {None})


def test_without_a_capacity_check_nodes_and_bound_pods_are_not_kept() -> None:
    made = FilledCache(Groups(capacity_check=CapacityCheck.OFF)).nodes(node("n", cpu="4"))
    member = pod("m", gates=(), node="n", spec=ungrouped("m")["spec"])
    made.pods(ungrouped("p"), member)
    assert (made.cache.nodes.node_infos(), made.cache.nodes.has_pod("uid-p")) == ((), False)
    assert None not in made.take_calls()[1]
