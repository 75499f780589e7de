"""Which group is opened when: order, room, one doubtful group per domain, and nobody starves (G3)."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from jobset_gate.podgroups.candidate import MAX_POD_KINDS, Admit, AdmittedGroup, Candidate, CapacityCheck, Hold
from jobset_gate.podgroups.cycle import SchedulingCycle
from jobset_gate.podgroups.fit.constraints import NodeFacts, NodeSelection, Requirement
from jobset_gate.podgroups.fit.greedy import GroupRequest, fit_shortage
from jobset_gate.podgroups.fit.guaranteed import NodeInfo, NodeSnapshot, PodShape
from tests.fakes.podgroups.objects import key

NOW = 1000.0
STARVATION = 300.0


def room(name: str, free: dict[str, int], whole: dict[str, int] | None = None, **labels: str) -> NodeInfo:
    """In whole units; empty unless it is written what is free."""
    amounts = [{it: many * 1000 for it, many in {"pods": 99, **some}.items()} for some in (free, whole or free)]
    return NodeInfo(node=NodeFacts(name=name, labels=labels), free=amounts[0], empty=amounts[1])


def node(cpu: int, name: str = "n") -> NodeInfo:
    """With room for all, were it empty."""
    return room(name, {"cpu": cpu}, {"cpu": 99})


def gang(name: str, pods: int, asked: dict[str, int], on: str = "n", pool: str = "", **more: Any) -> Candidate:
    """`on`: its domain, a letter for each node; `pool`: a label that its nodes have to have."""
    every = (Requirement(key="pool", operator="In", values=frozenset({pool})),) if pool else ()
    requests = {it: many * 1000 for it, many in {"pods": 1, **asked}.items()}
    shape = PodShape(selection=NodeSelection(every=every), requests=requests, count=pods)
    more = {"created": NOW, "ready_since": NOW, "priority": 0, **more}
    demand = GroupRequest(key=key(name, namespace=more.pop("namespace", "team")), shapes=(shape,), minimum=pods)
    return Candidate(requests=(demand,), domain=frozenset(on), **more)


def waiting(name: str, pods: int, *, cpu: int = 1, **more: Any) -> Candidate:
    return gang(name, pods, {"cpu": cpu}, **more)


def opened(candidate: Candidate, *, proven: bool = True) -> AdmittedGroup:
    return AdmittedGroup(requests=candidate.requests, domain=candidate.domain, proven=proven)


def judged(*candidates: Candidate, nodes: list[NodeInfo], now: float = NOW, **more: Any) -> dict[str, Admit | Hold]:
    """By name, in their order. `standing`: those that are open."""
    ground, standing = NodeSnapshot(nodes), more.pop("standing", ())
    how = {"check": CapacityCheck.FIT, "starvation_seconds": STARVATION, **more}
    found = SchedulingCycle(standing, ground, now=now, **how).decide_all(candidates)
    return {it.candidate.key.name: it for it in found}


def reported(*candidates: Candidate, **more: Any) -> dict[str, str]:
    """By name `opened`, `opened unproven`, or `Reason: message`."""
    return {name: _words(it) for name, it in judged(*candidates, **more).items()}


def _words(found: Admit | Hold) -> str:
    if isinstance(found, Hold):
        return f"{found.reason}: {found.message}"
    return "opened" if found.proven else "opened unproven"


def test_priority_comes_before_age_and_age_before_the_name() -> None:
    groups = [
        waiting("young", 1, created=9),
        waiting("old", 1, created=1),
        waiting("b", 1, created=5),
        waiting("a", 1, created=5),
        waiting("high", 1, priority=7, created=10),
    ]
    assert list(judged(*groups, nodes=[node(9)])) == ["high", "old", "a", "b", "young"]


def test_one_that_could_not_fit_on_empty_nodes_either_holds_nobody_back_however_long_it_has_waited() -> None:
    """Under Probe it is the next to be tried all the same."""
    empty = msgspec.structs.replace(node(4), empty={"cpu": 6000, "pods": 99_000})
    never = waiting("never", 8, created=1, ready_since=NOW - STARVATION)
    can = waiting("can", 6, created=2, ready_since=NOW - STARVATION)
    small = waiting("small", 2, created=3)
    lacks = "needs 8 cpu, 4 free; can never fit on the nodes there are: the whole domain has 6 cpu"
    assert reported(never, small, nodes=[empty]) == {"never": f"WaitingForCapacity: {lacks}", "small": "opened"}
    assert reported(never, can, small, nodes=[empty]) == {
        "never": f"WaitingForCapacity: {lacks}",
        "can": "WaitingForCapacity: needs 6 cpu, 4 free",
        "small": "BehindOther: behind team/can, which has waited too long for cpu to be passed",
    }
    other = waiting("other", 2, created=3, unsupported=("host ports",))
    assert reported(never, other, nodes=[empty])["other"] == "opened unproven"
    assert reported(never, other, nodes=[empty], check=CapacityCheck.PROBE) == {
        "never": "opened unproven",
        "other": "BehindOther: behind team/never, which is being placed; host ports is not modelled",
    }


def test_probe_opens_the_first_that_does_not_fit_and_only_that() -> None:
    """Its name is not shown in other namespaces: a tenant sees nothing of them through us."""
    groups = [waiting("a", 8, created=1), waiting("b", 8, created=2), waiting("c", 8, created=3, on="m")]
    theirs = waiting("theirs", 8, created=4, on="m", namespace="others")
    assert reported(*groups, theirs, nodes=[node(4)], check=CapacityCheck.PROBE) == {
        "a": "opened unproven",
        "b": "BehindOther: behind team/a, which is being placed; needs 8 cpu, 4 free",
        "c": "opened unproven",
        "theirs": "BehindOther: behind a group of another namespace, which is being placed; needs 8 cpu, 4 free",
    }


def test_one_that_waits_for_its_turn_is_not_passed_on_the_other_nodes_that_it_needs() -> None:
    """Or those of single nodes would be tried for ever, and one that may go to both never."""
    nodes = [node(1, "x"), node(1, "y")]
    tried = opened(waiting("tried", 2, on="x"), proven=False)
    wide, narrow = waiting("wide", 3, on="xy", created=1), waiting("narrow", 3, on="y", created=2)
    found = reported(wide, narrow, nodes=nodes, standing=(tried,), check=CapacityCheck.PROBE)
    assert found["wide"].startswith("BehindOther: behind team/tried, which is being placed")
    assert found["narrow"].startswith("BehindOther: behind team/wide")


def test_who_may_preempt_pods_that_are_in_its_way_is_tried_one_at_a_time() -> None:
    """But not one that would find no room then either, nor one that must not, nor for pods of its own rank."""
    full = msgspec.structs.replace(node(1), used_by_priority=((5, {"cpu": 3000, "pods": 3000}),))
    waits = "WaitingForCapacity: needs 4 cpu, 1 free"
    for preempts, words in ((6, "opened unproven"), (5, waits), (None, waits)):
        assert reported(waiting("a", 4, preempts=preempts), nodes=[full]) == {"a": words}
    assert reported(waiting("a", 5, preempts=6), nodes=[full]) == {"a": "WaitingForCapacity: needs 5 cpu, 1 free"}
    both = [waiting(name, 4, created=number, preempts=6) for number, name in enumerate("ab")]
    behind = "BehindOther: behind team/a, which is being placed; needs 4 cpu, 1 free"
    assert reported(*both, nodes=[full]) == {"a": "opened unproven", "b": behind}


def test_equal_pods_of_many_groups_that_are_being_placed_are_one_kind() -> None:
    placed = tuple(opened(waiting(f"placed-{number}", 1)) for number in range(MAX_POD_KINDS + 1))
    found = reported(waiting("next", 5), nodes=[node(MAX_POD_KINDS + 4)], standing=placed)
    assert found == {"next": "WaitingForCapacity: needs 5 cpu, 3 free"}


def test_off_opens_whatever_has_gathered() -> None:
    assert reported(waiting("a", 99), waiting("b", 99), nodes=[], check=CapacityCheck.OFF) == {
        "a": "opened unproven",
        "b": "opened unproven",
    }


oddities = st.sampled_from([(), ("x",)])
groups = st.lists(
    st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(0, 2), st.integers(0, 600), oddities), max_size=6
)


@settings(deadline=None)
@given(
    groups,
    st.lists(st.integers(0, 9), min_size=1, max_size=3),
    st.sampled_from([CapacityCheck.FIT, CapacityCheck.PROBE]),
)
def test_at_most_one_group_that_does_not_provably_fit_is_open(
    said: list[tuple[int, int, int, int, tuple[str, ...]]], cpus: list[int], how: CapacityCheck
) -> None:
    """The promise of the whole part; and those that are proven have room together."""
    candidates = [
        gang(str(number), pods, {"cpu": cpu}, priority=priority, ready_since=NOW - waited, unsupported=odd)
        for number, (pods, cpu, priority, waited, odd) in enumerate(said)
    ]
    nodes = [node(cpu, str(number)) for number, cpu in enumerate(cpus)]
    found = judged(*candidates, nodes=nodes, check=how)
    assert len(found) == len(candidates)
    verdicts = [it for it in found.values() if isinstance(it, Admit)]
    assert sum(not it.proven for it in verdicts) <= 1
    proven = [demand for it in verdicts if it.proven for demand in it.candidate.requests]
    assert not fit_shortage(proven, nodes)
    assert judged(*reversed(candidates), nodes=nodes, check=how) == found
