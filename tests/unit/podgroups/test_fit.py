"""Room on nodes: what a pod occupies, where it may go, and whether a gang has room for certain (G3)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobset_gate.podgroups.candidate import Domains
from jobset_gate.podgroups.fit import constraints, greedy, guaranteed
from jobset_gate.podgroups.fit.constraints import (
    MAX_REQUIREMENTS,
    MAX_TERMS,
    AntiAffinityTerm,
    LabelledPod,
    NodeFacts,
    NodeSelection,
)
from jobset_gate.podgroups.fit.greedy import GroupRequest
from jobset_gate.podgroups.fit.guaranteed import NodeInfo, NodeSnapshot, PodShape
from jobset_gate.podgroups.model import Flavor, PodGroupKey
from tests.fakes.podgroups.objects import read_node

Json = dict[str, Any]
ANYWHERE = NodeSelection()
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def container(**asked: str) -> Json:
    return {"name": "c", "resources": {"requests": asked}}


def room(name: str, *, labels: Mapping[str, str] | None = None, **free: int) -> NodeInfo:
    """A node with so much free, in whole units."""
    have = {key.replace("_", "/"): many * 1000 for key, many in free.items()} | {"pods": 110_000}
    return NodeInfo(node=NodeFacts(name=name, labels=labels or {}), free=have, empty=have)


def shape(count: int, selected: NodeSelection = ANYWHERE, **asked: int) -> PodShape:
    needed = {key: many * 1000 for key, many in asked.items()} | {"pods": 1000}
    return PodShape(selection=selected, requests=needed, count=count)


def demand(*shapes: PodShape) -> GroupRequest:
    return GroupRequest(
        key=PodGroupKey(flavor=Flavor.ALIBABA, namespace="team", name="g"),
        shapes=shapes,
        minimum=sum(it.count for it in shapes),
    )


def lacks(nodes: list[NodeInfo], *demands: GroupRequest) -> str:
    return greedy.fit_shortage(demands, nodes)


def is_certain(
    nodes: list[NodeInfo], *wanted: PodShape, before: Sequence[PodShape] = (), optional: Sequence[PodShape] = ()
) -> bool:
    """In any order of binding, with those `before`; none is kept for the `optional` ones, which may be bound first."""
    sums = guaranteed.Reservations(NodeSnapshot(nodes))
    sums.add_pods(before, required=True)
    sums.add_pods(optional, required=False)
    return sums.guarantees(wanted)


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [container(cpu="500m"), container(cpu="1")]}, 1500),
        ({"containers": [container(cpu="1")], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [{"resources": {"limits": {"cpu": "2"}}}]}, 2000),
        ({"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "6"}}}, 6000),
        ({"containers": [container(cpu="0.0001")]}, 1),
    ],
)
def test_a_pod_occupies_what_the_scheduler_sets_aside(spec: Json, cpu: int) -> None:
    assert constraints.pod_requests(spec) == {"cpu": cpu, "pods": 1000}


# --- Where it may go -------------------------------------------------------------------------------------------------


def required(*expressions: Json, fields: list[Json] | None = None) -> Json:
    term: Json = {"matchExpressions": list(expressions)} | ({"matchFields": fields} if fields else {})
    terms = {"nodeSelectorTerms": [term]}
    return {"affinity": {"nodeAffinity": {REQUIRED: terms}}}


NODE = {
    "metadata": {"name": "n-1", "labels": {"zone": "a", "size": "8"}},
    "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
}
GPU = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("spec", "admitted"),
    [
        ({}, True),
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        (required({"key": "zone", "operator": "In", "values": ["a", "b"]}), True),
        (required({"key": "disk", "operator": "NotIn", "values": ["a"]}), True),
        (required({"key": "disk", "operator": "DoesNotExist"}), True),
        (required({"key": "size", "operator": "Gt", "values": ["7"]}), True),
        (required({"key": "size", "operator": "Lt", "values": ["7"]}), False),
        (required({"key": "zone", "operator": "Gt", "values": ["7"]}), False),
        (required({"key": "zone", "operator": "Near", "values": ["a"]}), False),
        (required(), False),
        (required(fields=[{"key": "metadata.name", "operator": "In", "values": ["n-1"]}]), True),
    ],
)
def test_selector_and_required_affinity(spec: Json, admitted: bool) -> None:
    assert constraints.pod_node_selection(spec | GPU).admits(read_node(NODE).node) is admitted


@pytest.mark.parametrize(
    ("toleration", "admitted"),
    [
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_taints_and_tolerations(toleration: Json, admitted: bool) -> None:
    node = read_node(NODE).node
    assert constraints.pod_node_selection({"tolerations": [toleration]}).admits(node) is admitted
    assert constraints.pod_node_selection({}).matches(node), "the domain does not depend on taints"
    cordoned = read_node({"metadata": {"name": "n"}, "spec": {"unschedulable": True}}).node
    assert not ANYWHERE.admits(cordoned)


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({"affinity": {"podAffinity": {REQUIRED: [{}]}}}, ("inter-pod affinity",)),
        ({"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}}, ()),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, ("topology spread",)),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, ()),
        ({"volumes": [{"persistentVolumeClaim": {"claimName": "x"}}]}, ("volumes that bind to nodes",)),
        ({"volumes": [{"emptyDir": {}}]}, ()),
        ({"containers": [{"ports": [{"hostPort": 80}]}]}, ("host ports",)),
        ({"resourceClaims": [{"name": "x"}]}, ("resource claims",)),
    ],
)
def test_unsupported_constraints_are_named(spec: Json, names: tuple[str, ...]) -> None:
    assert constraints.unsupported_constraints(spec) == names


# --- Whether it fits -------------------------------------------------------------------------------------------------


def test_only_nodes_that_take_the_pods_count() -> None:
    zone = constraints.pod_node_selection({"nodeSelector": {"zone": "a"}})
    nodes = [room("a", labels={"zone": "a"}, cpu=1), room("b", cpu=9)]
    assert lacks(nodes, demand(shape(2, zone, cpu=1))) == "needs 2 cpu, 1 free"
    assert Domains(nodes).domain_of([shape(1, zone)]) == {"a"}


def test_room_in_all_that_is_nowhere_in_one_piece_is_reported_as_that() -> None:
    answer = lacks([room("a", cpu=4), room("b", cpu=2)], demand(shape(2, cpu=3)))
    assert answer == "1 of 2 pods have room: what is free is spread over too many nodes"


def test_room_for_two_shapes_is_certain_only_if_no_order_can_spoil_it() -> None:
    """Small pods spread over both nodes would leave no place for the large one."""
    mixed = shape(2, cpu=1), shape(1, cpu=4)
    two, three = ([room(name, cpu=4) for name in names] for names in ("ab", "abc"))
    assert not lacks(two, demand(*mixed))
    assert not is_certain(two, *mixed)
    assert is_certain(three, *mixed)
    for free, sure in ((10, False), (16, True)):
        words = "members of either group beyond its minimum may take the other's places"
        assert is_certain([room("a", cpu=free)], shape(8, cpu=1), before=[shape(8, cpu=1)]) is sure, words


sizes = st.integers(1, 4)
shapes = st.lists(st.tuples(st.integers(1, 3), sizes, sizes), min_size=1, max_size=3)
nodes = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4)


@settings(deadline=None)
@given(shapes, nodes, st.data())
def test_a_certain_fit_stands_whatever_the_scheduler_does(
    asked: list[tuple[int, int, int]], free: list[tuple[int, int]], data: st.DataObject
) -> None:
    """A scheduler that picks pods and nodes at will never gets stuck."""
    nodes = [room(str(number), cpu=cpu, memory=memory) for number, (cpu, memory) in enumerate(free)]
    wanted = [shape(count, cpu=cpu, memory=memory) for count, cpu, memory in asked]
    if not is_certain(nodes, *wanted):
        return
    assert not lacks(nodes, demand(*wanted))
    left = {it.node.name: dict(it.free) for it in nodes}
    for each in data.draw(st.permutations([it for it in wanted for _ in range(it.count)])):
        possible = sorted(name for name, have in left.items() if guaranteed.capacity(have, each.requests))
        assert possible
        chosen = data.draw(st.sampled_from(possible))
        left[chosen] = constraints.subtract(left[chosen], each.requests)


kinds = st.builds(shape, st.integers(1, 4), cpu=st.integers(1, 4), gpu=st.integers(0, 2))


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), min_size=1, max_size=4),
    st.lists(st.tuples(kinds, st.booleans()), max_size=5),
    st.lists(kinds, min_size=1, max_size=3),
)
@example([(4, 0)], [(shape(2, cpu=1), True), (shape(2, cpu=2), False)], [shape(1, cpu=1)])
def test_pods_added_one_after_the_other_come_to_the_same_as_all_at_once(
    nodes: list[tuple[int, int]], before: list[tuple[PodShape, bool]], more: list[PodShape]
) -> None:
    """The sums of a pass, against the rule as it is written down: all pairs, each time."""
    infos = [room(str(number), cpu=cpu, gpu=gpu) for number, (cpu, gpu) in enumerate(nodes)]
    ledger = guaranteed.Reservations(NodeSnapshot(infos))
    for each, sure in before:
        ledger.add_pods([each], required=sure)
    wanted = guaranteed.group_equal([*(each for each, sure in before if sure), *more])
    others = guaranteed.group_equal(each for each, sure in before if not sure)
    assert ledger.guarantees(more) is by_the_rule(infos, wanted, others)


def by_the_rule(nodes: list[NodeInfo], wanted: list[PodShape], others: list[PodShape]) -> bool:
    """No kind that needs its places may lose too many of them to the others."""

    def places(one: PodShape) -> int:
        return sum(guaranteed.capacity(it.free, one.requests) for it in nodes if one.selection.admits(it.node))

    def lost(one: PodShape, other: PodShape) -> int:
        worst = max(-(-other.requests.get(name, 0) // many) for name, many in one.requests.items() if many)
        return min(other.count, places(other)) * worst

    return all(
        places(one) - sum(lost(one, it) for it in (*wanted, *others) if it is not one) >= one.count for one in wanted
    )


def test_places_are_counted_again_where_a_node_has_changed() -> None:
    one, other, wide = room("a", cpu=4), room("b", cpu=4), room("b", cpu=9)
    ground = NodeSnapshot([one, other])
    assert ground.capacity(shape(1, cpu=2)) == 4
    ground.refresh([one, wide])
    assert ground.capacity(shape(1, cpu=2)) == 6
    ground.refresh([one])
    assert ground.capacity(shape(1, cpu=2)) == 2


HOST = "kubernetes.io/hostname"


def terms(*said: dict[str, Any]) -> tuple[AntiAffinityTerm, ...]:
    return constraints.anti_affinity_terms({"affinity": {"podAntiAffinity": {REQUIRED: list(said)}}})


def term(selector: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    return {"topologyKey": HOST, **more} | ({} if selector is None else {"labelSelector": selector})


def mark(namespace: str = "team", **labels: str) -> LabelledPod:
    return namespace, constraints.stable_labels(labels.items())


A = {"matchLabels": {"app": "a"}}


def expression(operator: str, *values: str, key: str = "app") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


@pytest.mark.parametrize(
    ("said", "who", "selected"),
    [
        (term(A), mark(app="a"), True),
        (term(A), mark(app="b"), False),
        (term(A), mark("other", app="a"), False),
        (term(A, namespaces=["other"]), mark("other", app="a"), True),
        (term(A, namespaces=["other"]), mark(app="a"), False),
        (term(A, namespaceSelector={}), mark("other", app="a"), True),
        (term({}), mark(), True),
        (term(expression("NotIn", "a")), mark(app="a"), False),
        (term(expression("NotIn", "a")), mark(), True),
        (term(expression("Exists")), mark(), False),
        (term(expression("In", "0", key="batch.kubernetes.io/job-completion-index")), mark(), True),
        (term({"matchLabels": {str(it): "" for it in range(MAX_REQUIREMENTS + 1)}}), mark(), True),
    ],
)
def test_which_pods_a_term_selects(said: dict[str, Any], who: LabelledPod, selected: bool) -> None:
    (found,) = terms(said)
    assert found.selects_pod(who, "team") is selected


def test_a_term_without_a_selector_selects_nobody_and_only_so_many_are_looked_at() -> None:
    assert terms(term(None)) == ()
    assert len(terms(*[term(A)] * (MAX_TERMS + 1))) == MAX_TERMS
    assert constraints.anti_affinity_terms({}) == ()


def test_labels_that_only_one_pod_has_are_not_kept() -> None:
    assert mark(**{"app": "a", "batch.kubernetes.io/job-completion-index": "7"}) == ("team", (("app", "a"),))
