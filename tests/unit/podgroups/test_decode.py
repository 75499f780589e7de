"""Pods, PodGroups, records, nodes: what of them reaches the rules of groups."""

from __future__ import annotations

import pytest

from jobset_gate import names
from jobset_gate.podgroups import decode
from jobset_gate.podgroups.model import Format, group_label
from jobset_gate.podgroups.snapshot import MemberPod
from tests.fakes.podgroups.objects import (
    TEN_O_CLOCK,
    config_map,
    key,
    node,
    pod,
    pod_group,
    read_bound,
    read_config_map,
    read_node,
    read_pod,
    read_pod_group,
    record,
)
from tests.fakes.podgroups.sources import PLUGINS, Json, problem_lines
from tests.fakes.present import present

DELETING = {"deletionTimestamp": "2026-08-01T11:00:00Z"}

# --- Members ----------------------------------------------------------------


def test_a_held_pod_is_a_member_of_the_group_of_its_label() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-uid", "controller": True}
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}
    labels = {PLUGINS: "g", names.JS_NAME: "set", names.GATED: "true"}
    notes = {names.POD_GROUP_TAKEN_BACK: "abc.3", names.KOORDINATOR_TIMED_OUT: "true"}
    spec = {"priority": 7, "schedulingGroup": {"podGroupName": "native"}}
    seen = read_pod(pod(labels=labels, notes=notes, meta={"ownerReferences": [other, owner]}, spec=spec))
    assert (seen.eviction_mark, seen.timed_out, seen.native) == ("abc.3", True, "native")
    assert (seen.uid, seen.namespace, seen.name) == ("uid-p", "team", "p")
    assert seen.group_label == group_label(key())
    assert seen.membership is not None
    assert (seen.membership.format, seen.membership.key) == (Format.SCHEDULER_PLUGINS, key())
    assert seen.created == TEN_O_CLOCK
    assert seen.priority == 7
    assert seen.controller is not None
    assert (seen.controller.kind, seen.controller.name, seen.controller.uid) == ("Job", "train", "job-uid")
    assert (seen.jobset, seen.barrier) == ("set", True)
    assert (seen.gated, seen.foreign_gates, seen.generation, seen.node, seen.moved) == (True, (), 0, "", False)


@pytest.mark.parametrize(
    "text", ["", "3", "3 yesterday", "-3 2026-08-01T10:00:00Z", f"{'9' * 5000} 2026-08-01T10:00:00Z"]
)
def test_an_annotation_that_we_cannot_have_written_opens_nothing(text: str) -> None:
    assert decode.parse_opened(text) == (0, 0.0)
    ours = "12 2026-08-01T10:00:00.250Z"
    assert (decode.parse_opened(ours), decode.format_opened(12, TEN_O_CLOCK + 0.25)) == ((12, TEN_O_CLOCK + 0.25), ours)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({"status": "False", "reason": "Unschedulable", "message": "0/5 nodes"}, "0/5 nodes"),
        ({"status": "False", "reason": "SchedulerError", "message": "oh"}, "oh"),
        ({"status": "False", "reason": "SchedulingGated", "message": "blocked"}, ""),
        ({"status": "True"}, ""),
    ],
)
def test_the_scheduler_is_quoted_once_it_has_tried(condition: Json, words: str) -> None:
    conditions = [{"type": "Initialized", "status": "False"}, {"type": "PodScheduled"} | condition]
    assert read_pod(pod(status={"conditions": conditions})).unschedulable == words


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        (pod(), True),
        (pod(gates=(), notes={names.POD_GROUP_OPENED: "1 2026-08-01T10:00:00Z"}), True),
        (pod(gates=(), node="n"), True),
        (pod(gates=()), False),
        (pod(status={"phase": "Failed"}), False),
        (pod(meta=DELETING), False),
    ],
    ids=["gated", "opened", "ungated and bound", "ungated, not bound", "failed", "deleting"],
)
def test_which_members_the_minimum_asks_for(made: Json, counts: bool) -> None:
    assert read_pod(made).is_counted is counts


def test_a_pod_that_names_another_group_by_now_has_moved() -> None:
    assert read_pod(pod(labels={PLUGINS: "other"}, held=group_label(key()))).moved
    assert read_pod(pod(labels={}, held=group_label(key()))).moved
    assert not read_pod(pod(labels={PLUGINS: "other"}, held="")).moved


def test_pods_of_one_template_share_what_their_template_says() -> None:
    """Ten thousand of them are kept."""
    volumes = [[{"name": f"token-{it}", "projected": {}}] for it in "ab"]
    one = read_pod(pod("a", spec={"volumes": volumes[0]}))
    other = read_pod(pod("b", node="n", gates=(), spec={"volumes": volumes[1]}, status={"phase": "Running"}))
    assert one.shape is other.shape
    assert one.membership is other.membership
    assert one.group_label is other.group_label


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "main", "resources": {"requests": {"cpu": "501m", "memory": "1Gi"}}}]},
        {"initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}]},
        {"overhead": {"cpu": "1"}},
        {"resources": {"requests": {"cpu": "9"}}},
        {"nodeSelector": {"a": "b"}},
        {"tolerations": [{"operator": "Exists"}]},
    ],
    ids=["requests", "sidecar", "overhead", "whole pod", "selector", "toleration"],
)
def test_what_decides_about_a_place_makes_another_shape(spec: Json) -> None:
    assert read_pod(pod(spec=spec)).shape.equivalence_key != read_pod(pod()).shape.equivalence_key


def test_null_and_absent_are_the_same() -> None:
    seen = read_pod(pod(spec=dict.fromkeys(("volumes", "schedulingGates", "initContainers", "tolerations"))))
    assert (seen.shape.equivalence_key, seen.gated) == (read_pod(pod()).shape.equivalence_key, False)


# --- Bound pods ----------------------------------------------------------------


def test_any_pod_with_a_node_takes_up_room_there() -> None:
    """Also one of another scheduler, of no group, or on its way out."""
    seen = present(read_bound(pod(labels={}, held="", gates=(), node="n", meta=DELETING, spec={"schedulerName": "x"})))
    assert (seen.uid, seen.node, seen.ungated) == ("uid-p", "n", None)
    assert seen.requests == {"cpu": 500, "memory": 2**30 * 1000, "pods": 1000}
    assert read_bound(pod()) is None


def test_a_pod_that_should_have_been_held_and_was_not_is_an_ungated_member() -> None:
    seen = present(ungated(pod(held="", gates=(), node="n")))
    assert (seen.group_label, seen.ungated, seen.is_counted, seen.moved) == ("", True, True, False)
    assert seen.membership == read_pod(pod()).membership


@pytest.mark.parametrize(
    "change",
    [
        {"held": None},
        {"labels": {}},
        {"spec": {"schedulerName": "volcano"}},
        {"spec": {"schedulingGroup": {"podGroupName": "native"}}},
        {"notes": {names.MIRROR_POD: "x"}},
        {"meta": {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}]}},
    ],
    ids=["held", "no group", "other scheduler", "native", "mirror", "daemon"],
)
def test_pods_that_are_not_ours_to_hold_are_no_ungated_members(change: Json) -> None:
    ours: Json = {"held": "", "gates": (), "node": "n"}
    assert ungated(pod(**ours | change)) is None


def test_rules_of_the_settings_tell_who_should_have_been_held() -> None:
    made = pod(held="", gates=(), node="n", spec={"schedulerName": "mine"})
    assert ungated(made, schedulers=("mine",)) is not None
    assert ungated(made, schedulers=("mine",), ways=frozenset({Format.KEP_24})) is None
    assert ungated(made, schedulers=("mine",), namespace="team") is not None
    assert ungated(made, schedulers=("mine",), namespace="elsewhere") is None
    assert read_bound(made, namespace="elsewhere") is not None, "it takes up room all the same"


def ungated(body: Json, **rules: object) -> MemberPod | None:
    seen = present(read_bound(body, **rules))
    return seen.ungated


# --- PodGroups and records ----------------------------------------------------------------


@pytest.mark.parametrize("api", [names.KEP24_GROUP, names.PLUGINS_GROUP, names.SIGS_GROUP])
def test_a_pod_group_of_any_kind_is_a_home(api: str) -> None:
    minimum = {"minMembers": 4} if api == names.KEP24_GROUP else {"minMember": 4}
    managed = [
        {"manager": "kubectl", "operation": "Update"},
        {"manager": "their-controller", "operation": "Update", "subresource": "status"},
        {"manager": names.FIELD_MANAGER, "operation": "Update", "subresource": "status"},
    ]
    body = pod_group(
        spec=minimum, status={"phase": "Pending"}, notes={"a": "b", names.POD_GROUP_STATE: "Pending: c: d"}
    )
    body["metadata"]["managedFields"] = managed
    seen = read_pod_group(body, api)
    assert (seen.ref.api, seen.ref.namespace, seen.ref.name) == (api, "team", "g")
    assert (seen.ref.uid, seen.ref.resource_version) == ("uid-g", "5")
    assert present(seen.pod_group).spec.minimum == 4
    assert seen.created == TEN_O_CLOCK - 3600
    assert seen.status == {"phase": "Pending"}
    assert seen.state == "Pending: c: d"
    assert seen.status_managers == ("their-controller",)
    assert (seen.record, seen.problem) == (None, None)


@pytest.mark.parametrize("body", [{"spec": None}, {"spec": "four"}, {"spec": {"minMember": "four"}}, {"spec": []}])
def test_a_pod_group_of_another_form_says_what_is_wrong_with_it(body: Json) -> None:
    """A CRD of another's may check nothing."""
    seen = read_pod_group(pod_group(**body, status="none"))
    assert problem_lines(present(seen.pod_group).problems)[0].startswith("spec.minMember")
    assert seen.status == {}


@pytest.mark.parametrize("text", ["", "{}", "null", "[1]", '{"generation": "x"}', "\u0000", "{" * 100_000])
def test_a_record_that_cannot_be_read_is_a_problem_and_not_the_same_as_none(text: str) -> None:
    on_group = read_pod_group(pod_group(notes={names.POD_GROUP_RECORD: text}))
    on_map = read_config_map(config_map(key(), text))
    without = present(read_config_map(config_map(key()) | {"data": None}))
    assert (without.record, without.problem) == (None, None)
    assert on_map is not None
    assert (on_group.record, on_map.record) == (None, None)
    assert str(on_group.problem).startswith(f"metadata.annotations[{names.POD_GROUP_RECORD}]: ")
    assert str(on_map.problem).startswith("data.record: ")


@pytest.mark.parametrize(
    "meta",
    [
        {"name": "jobset-gate-gang-0"},
        {"namespace": "elsewhere"},
        {"annotations": None},
        {"annotations": {names.POD_GROUP_KEY: "volcano/team/g"}},
        {"annotations": {names.POD_GROUP_KEY: "scheduler-plugins/team/other"}},
    ],
)
def test_a_config_map_that_is_not_where_ours_would_be_is_none_of_ours(meta: Json) -> None:
    assert read_config_map(config_map(key(), record((key(), 1)), **meta)) is None


def test_a_node_is_what_pods_may_take_up_on_it_and_who_may_come() -> None:
    body = node("n1", labels={"zone": "a"}, cpu="3900m", memory="8Gi", ephemeral_storage="0.0005")
    body["spec"] = {"unschedulable": True, "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}
    seen = read_node(body)
    assert seen.allocatable == {"cpu": 3900, "memory": 2**33 * 1000, "pods": 110_000, "ephemeral-storage": 0}
    assert (seen.node.name, seen.node.labels["zone"], seen.node.unschedulable) == ("n1", "a", True)
    assert seen.node.taints == (("k", "v", "NoSchedule"),)
    assert read_node(body | {"status": {}}).allocatable == {}, "one that has just come has no room yet"
