"""G2: what a pod of a group looks like once it was admitted, and which pods are left alone."""

import copy

import pytest

from jobset_gate import names
from jobset_gate.podgroups.admission import admit_pod
from jobset_gate.podgroups.model import FLAVOR_OF, Format, group_label
from jobset_gate.settings import Groups, Native
from tests.fakes.grouped_pods import Json, gates, meta_of, owned, pod
from tests.fakes.jobsets import applied
from tests.fakes.podgroups.objects import key
from tests.fakes.podgroups.sources import GANG


def after(made: Json, groups: Groups | None = None) -> Json:
    """The pod as it is stored. A second look changes nothing, and the first one has not touched what it was given."""
    reported, before = groups or Groups(), copy.deepcopy(made)
    patch = admit_pod(made, "team", reported)
    assert isinstance(patch, list)
    assert made == before
    stored: Json = applied(made, patch)
    assert admit_pod(stored, "team", reported) == []
    return stored


def held_for(made: Json) -> str:
    found: str = made["metadata"]["labels"][names.POD_GROUP_LABEL]
    return found


@pytest.mark.parametrize("way", Format)
def test_it_gets_the_gate_and_the_hash_of_its_group(way: Format) -> None:
    made = after(pod(way, "train"))
    assert gates(made) == [names.POD_GROUP_GATE]
    assert held_for(made) == group_label(key("train", FLAVOR_OF[way]))


def test_a_gate_and_a_label_of_its_own_making_are_put_right_and_gates_of_others_stay() -> None:
    """A pod that was copied from another group's, out of the cluster."""
    theirs = after(pod(Format.ALIBABA, schedulingGates=[{"name": "example.com/x"}]))
    assert gates(theirs) == ["example.com/x", names.POD_GROUP_GATE]
    notes = {names.POD_GROUP_OPENED: "3 x", names.POD_GROUP_TAKEN_BACK: "y.3"}
    meta, there = {"labels": {names.POD_GROUP_LABEL: "0123"}, "annotations": notes}, [names.POD_GROUP_GATE, "b"]
    made = after(pod(Format.SCHEDULER_PLUGINS, meta=meta, schedulingGates=[{"name": it} for it in there]))
    assert gates(made) == [names.POD_GROUP_GATE, "b"]
    assert held_for(made) == group_label(key())
    assert made["metadata"]["annotations"] == {}


@pytest.mark.parametrize("way", [Format.KEP_24, Format.SCHEDULER_PLUGINS, Format.KOORDINATOR_ANNOTATIONS])
def test_an_empty_name_is_held_under_a_label_of_its_own(way: Format) -> None:
    made = after(pod(way, ""), Groups(native=Native.ON))
    assert gates(made) == [names.POD_GROUP_GATE]
    assert held_for(made) == group_label(key("", FLAVOR_OF[way]))
    assert "schedulingGroup" not in made["spec"]


def test_values_are_not_judged_here() -> None:
    """The controller that makes the pods would try for ever; the controller says it on the group and its pods."""
    notes = {f"{GANG}name": "Not_A-Name!", f"{GANG}min-available": "-4", f"{GANG}mode": "Maybe", f"{GANG}groups": "[x"}
    assert gates(after(pod(meta={"annotations": notes}))) == [names.POD_GROUP_GATE]


def test_two_names_are_refused_with_both() -> None:
    both = pod(Format.KEP_24, "a", meta=meta_of(Format.ALIBABA, "b"))
    assert str(admit_pod(both, "team", Groups())) == (
        'metadata: ["a","b"]: names two groups, a pod belongs to one:'
        " metadata.labels[pod-group.scheduling.sigs.k8s.io/name] says b,"
        " metadata.annotations[scheduling.k8s.io/group-name] says a"
    )
    held = admit_pod(both, "team", Groups(ways=(Format.ALIBABA,)))
    assert isinstance(held, list), "one of them means nothing here"


def test_the_native_group_is_named_after_the_label() -> None:
    made = after(pod(Format.ALIBABA), Groups(native=Native.ON))
    assert made["spec"]["schedulingGroup"] == {"podGroupName": "jobset-gate-" + held_for(made)}
    assert gates(made) == [names.POD_GROUP_GATE]


LEFT_ALONE: dict[str, Json] = {
    "names no group": pod(),
    "names a minimum but no group": pod(meta={"annotations": {f"{GANG}min-available": "3"}}),
    "another scheduler": pod(Format.KEP_24, schedulerName="volcano"),
    "bound": pod(Format.KEP_24, nodeName="n1"),
    "mirror": pod(Format.KEP_24, meta={"annotations": {"kubernetes.io/config.mirror": "x"}}),
    "daemon": pod(Format.KEP_24, meta=owned("DaemonSet")),
    "native group": pod(Format.KEP_24, schedulingGroup={"podGroupName": "x"}),
}


@pytest.mark.parametrize("why", LEFT_ALONE)
def test_what_is_not_ours_is_let_through_as_it_is(why: str) -> None:
    """The match conditions say the same; this is for what is sent all the same."""
    assert admit_pod(LEFT_ALONE[why], "team", Groups()) == []


@pytest.mark.parametrize("way", Format)
def test_a_way_that_is_off_takes_nobody_nor_does_any_while_groups_are_off(way: Format) -> None:
    """Koordinator's label is one way, its annotations another: a pod with both is in as long as one of them is on."""
    on = Groups(ways=tuple(it for it in Format if it is not way))
    assert admit_pod(pod(way), "team", on) == admit_pod(pod(way), "team", Groups(enabled=False)) == []
    annotated = pod(Format.KOORDINATOR_POD_GROUP, meta={"annotations": {f"{GANG}min-available": "3"}})
    taken = admit_pod(annotated, "team", on) != []
    assert taken is (way is not Format.KOORDINATOR_POD_GROUP)
