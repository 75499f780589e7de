"""What is kept of a tenant's pods and PodGroups, and what is worked out about them, has a bound (G3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from jobset_gate import names
from jobset_gate.podgroups import decode, wire
from jobset_gate.podgroups.candidate import Domains
from jobset_gate.podgroups.fit import constraints, template
from jobset_gate.podgroups.fit.constraints import NodeFacts, NodeSelection, Requirement
from jobset_gate.podgroups.fit.guaranteed import NodeInfo, PodShape
from tests.fakes.growth import retained
from tests.fakes.podgroups.objects import config_map, key, pod, pod_group, read_bound, read_pod, read_pod_group
from tests.fakes.podgroups.sources import GANG
from tests.fakes.present import present
from tests.fakes.wire_objects import Json

LONG = 100_000


def wide(values: int, seed: int = 0) -> Json:
    """Affinity to so many zones."""
    listed = [f"zone-{seed}-{number}" for number in range(values)]
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": listed}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def long(number: int) -> str:
    return f"{number} " + "x" * LONG


def containers(number: int) -> list[Json]:
    return [{"name": f"c{it}", "resources": {"requests": {f"example.com/{number}-{it}": "1"}}} for it in range(2000)]


PODS: dict[str, Callable[[int], Json]] = {
    "values of an affinity": lambda it: pod(spec={"affinity": wide(10_000, it)}),
    "tolerations": lambda it: pod(spec={"tolerations": [{"key": f"{it}-{each}"} for each in range(3000)]}),
    "a node selector": lambda it: pod(spec={"nodeSelector": {f"{it}-{each}": "x" for each in range(3000)}}),
    "containers": lambda it: pod(spec={"containers": containers(it)}),
    "a list of gangs": lambda it: pod(notes={f"{GANG}name": "g", f"{GANG}groups": long(it)}, labels={}),
    "the name of its group": lambda it: pod(notes={f"{GANG}name": long(it)}, labels={}),
    "a minimum": lambda it: pod(notes={f"{GANG}name": "g", f"{GANG}min-available": long(it)}, labels={}),
    "a mark of ours": lambda it: pod(notes={names.POD_GROUP_TAKEN_BACK: long(it)}),
    "other annotations": lambda it: pod(notes={"example.com/note": long(it)}),
    "the name of its owner": lambda it: pod(
        meta={"ownerReferences": [{"kind": long(it), "name": long(it), "uid": long(it), "controller": True}]}
    ),
    "gates": lambda it: pod(gates=tuple(f"example.com/{it}-{each}" for each in range(3000))),
    "what its scheduler says": lambda it: pod(
        status={"phase": long(it), "conditions": [{"type": "PodScheduled", "status": "False", "message": long(it)}]}
    ),
}


@pytest.mark.parametrize("keep", [True, False], ids=["that are there", "that are gone"])
@pytest.mark.parametrize("what", PODS)
def test_of_pods_little_is_kept_whatever_they_carry(what: str, keep: bool) -> None:
    """Made one after another they pass any quota."""
    # A text that is cut, an owner's four names, a list of gangs of 8 KiB: at most some 30 KiB each.
    assert retained(PODS[what], wire.GroupPod, decode.decode_member, keep=keep, many=20) < 0.75


def test_of_templates_that_are_new_each_time_a_bounded_number_is_kept() -> None:
    """Each as large as is still looked into."""

    def made(number: int) -> Json:
        return pod(spec={"affinity": wide(1500, number)})

    assert retained(made, wire.GroupPod, decode.decode_member, keep=False, many=200) < 24


def test_a_pod_that_says_too_much_of_its_nodes_is_not_modelled() -> None:
    said = read_pod(pod(spec={"affinity": wide(20_000)}))
    assert said.unsupported == (template._LARGE,)
    assert said.shape.selection == NodeSelection()
    assert said.shape.requests == {"cpu": 500, "memory": 2**30 * 1000, "pods": 1000}
    many = {"tolerations": [{"key": "a", "operator": "Exists"}] * (constraints.MAX_TOLERATIONS + 1)}
    assert read_pod(pod(spec=many)).unsupported == (template._WIDE,)
    expressions = [{"key": "a", "operator": "Exists"}] * (constraints.MAX_REQUIREMENTS + 1)
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert read_pod(pod(spec={"affinity": required})).unsupported == (template._WIDE,)
    assert not read_pod(pod()).unsupported, "a plain one with the same containers"


def test_a_pod_with_as_much_as_is_looked_at_is_modelled() -> None:
    said = read_pod(pod(spec={"affinity": wide(1000), "tolerations": [{"key": "a"}] * constraints.MAX_TOLERATIONS}))
    assert said.unsupported == ()
    node = NodeFacts(name="n", labels={"zone": "zone-0-999"})
    assert said.shape.selection.admits(node)
    assert not said.shape.selection.admits(NodeFacts(name="n", labels={"zone": "zone-0-1000"}))


def test_a_bound_pod_with_too_much_in_it_still_takes_up_what_its_first_containers_ask_for() -> None:
    main = {"name": "main", "resources": {"requests": {"cpu": "2"}}}
    found = present(read_bound(pod(node="n", spec={"containers": [main, *containers(0)]})))
    assert found.requests["cpu"] == 2000


def test_a_domain_that_takes_too_long_to_find_is_that_of_all_nodes() -> None:
    facts = (NodeFacts(name=f"n{number}", labels={"zone": "a"}) for number in range(500))
    nodes = [NodeInfo(node=it, free={}, empty={}) for it in facts]
    zone = Requirement(key="zone", operator="In", values=frozenset({"b"}))
    own = [Requirement(key="name", operator="In", values=frozenset({f"n{number}"})) for number in range(20)]
    shapes = [PodShape(selection=NodeSelection(every=(zone,) * 20 + (it,)), requests={}, count=1) for it in own]
    assert Domains(nodes).domain_of(shapes[:1]) == frozenset()
    assert Domains(nodes).domain_of(shapes) == {it.node.name for it in nodes}


LARGE_FIELDS: dict[str, Callable[[int], Json]] = {
    "annotations": lambda it: pod_group(notes={"example.com/note": long(it)}),
    "a record": lambda it: pod_group(notes={names.POD_GROUP_RECORD: long(it)}),
    "our word on its state": lambda it: pod_group(notes={names.POD_GROUP_STATE: long(it)}),
    "a status": lambda it: pod_group(status={"conditions": [{"type": long(it)}]}),
    "a spec": lambda it: pod_group(spec={"minMember": 3, "scheduleTimeoutSeconds": long(it)}),
    "resources": lambda it: pod_group(spec={"minMember": 3, "minResources": {f"{it}-{n}": "1" for n in range(9000)}}),
}


@pytest.mark.parametrize("what", LARGE_FIELDS)
def test_of_a_pod_group_little_is_kept_whatever_it_says(what: str) -> None:
    convert = partial(decode.decode_pod_group, api=names.PLUGINS_GROUP)
    assert retained(LARGE_FIELDS[what], wire.PodGroup, convert, many=20) < 0.25


def test_of_a_config_map_little_is_kept_whatever_it_holds() -> None:
    def made(number: int) -> Json:
        return config_map(key(f"g{number}"), long(number))

    assert retained(made, wire.RecordConfigMap, decode.decode_config_map, many=20) < 0.25
    assert decode.parse_key(f"alibaba/team/{long(0)}") is None


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"more": "x" * 100_000}, "spec: null: is too large: must be at most 65536 bytes of JSON"),
        ({"minResources": {f"r{it}": "1" for it in range(65)}}, "names 65 resources: must be at most 64"),
    ],
)
def test_a_pod_group_that_says_too_much_is_reported(spec: Json, problem: str) -> None:
    seen = read_pod_group(pod_group(spec={"minMember": 3} | spec))
    (found,) = present(seen.pod_group).problems
    assert problem in str(found)


def test_an_annotation_of_a_group_that_is_too_long_is_reported_with_its_path() -> None:
    claim = present(read_pod(pod(notes={f"{GANG}name": "g", f"{GANG}groups": long(0)}, labels={})).membership)
    assert [it.path for it in claim.problems] == [f"metadata.annotations[{GANG}groups]"]
    assert "at most 8192 characters" in str(claim.problems[0])
