"""What becomes of groups that are not open: each waits for one reason, or is a candidate (G3)."""

from __future__ import annotations

from typing import Any

import msgspec

from jobset_gate import names
from jobset_gate.podgroups import evaluate as view
from jobset_gate.podgroups.candidate import MAX_POD_KINDS, MIXED, Admit, CapacityCheck, Domains, Hold
from jobset_gate.podgroups.evaluate import evaluate_all
from jobset_gate.podgroups.fit.constraints import NodeFacts
from jobset_gate.podgroups.fit.guaranteed import NodeInfo, PodShape
from jobset_gate.podgroups.model import Flavor, PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState
from jobset_gate.podgroups.reserved import (
    AFTER_DEADLINE_SECONDS,
    UNSUPPORTED_GRACE_SECONDS,
    living_shapes,
    reserved_for,
)
from jobset_gate.podgroups.snapshot import GroupSnapshot
from tests.fakes.podgroups.cluster import asking
from tests.fakes.podgroups.objects import TEN_O_CLOCK, key, pod, pod_group, record
from tests.fakes.podgroups.snapshots import bound, group_snapshot, opened
from tests.fakes.podgroups.sources import GANG

NOW = TEN_O_CLOCK + 100


def room(cpu: int) -> NodeInfo:
    free = {"cpu": cpu * 1000, "memory": 2**50, "pods": 110_000}
    return NodeInfo(node=NodeFacts(name="n", labels={}), free=free, empty={**free, "cpu": 99_000})


def waiting(name: str, pods: int = 3, minimum: int = 3, **more: Any) -> GroupSnapshot:
    """A group of scheduler-plugins whose pods ask for half a processor each."""
    mine = key(name)
    members = [pod(f"{name}-{number}", of=mine) for number in range(pods)]
    return group_snapshot(*members, of=mine, group=pod_group(name, spec={"minMember": minimum}), **more)


def gang(name: str, *listed: str) -> GroupSnapshot:
    mine = key(name, Flavor.KOORDINATOR)
    gangs = ",".join(f'"team/{it}"' for it in listed)
    notes = {f"{GANG}name": name, f"{GANG}min-available": "1"} | ({f"{GANG}groups": f"[{gangs}]"} if listed else {})
    return group_snapshot(pod(f"{name}-0", of=mine, labels={}, notes=notes), of=mine)


def decided(
    *seen: GroupSnapshot, nodes: tuple[NodeInfo, ...] = (), check: CapacityCheck = CapacityCheck.FIT, **more: Any
) -> dict[PodGroupKey, Admit | Hold | GroupReason]:
    by_key = {it.group.key: it for it in seen}
    groups, quota = {of: it.group for of, it in by_key.items()}, more.pop("quota_shortage", lambda _: "")
    evaluator = view.GroupEvaluator(by_key.get, groups.get, quota_shortage=quota)
    how = {"now": NOW, "bound": lambda _: False, **more}
    return evaluate_all(seen, nodes, evaluator, check=check, starvation_seconds=300, **how)


def reported(*seen: GroupSnapshot, **more: Any) -> dict[str, str]:
    """By name: `opened`, or reason and message."""
    found = decided(*seen, **more)
    return {key.name: "opened" if isinstance(it, Admit) else f"{it.reason}: {it.message}" for key, it in found.items()}


def taken_back(name: str, not_before: float = NOW - 1) -> AdmissionRecord:
    """Once, and its back-off ends then."""
    return record((key(name), 1), stage=AdmissionState.CLOSED, rolled_back=1, not_before=not_before, why="late")


def test_a_foreign_gate_holds_a_group_only_if_it_needs_that_pod() -> None:
    theirs, others = (pod(it, gates=(names.POD_GROUP_GATE, "other.dev/gate")) for it in ("theirs", "others"))
    enough = group_snapshot(pod("a"), pod("b"), pod("c"), theirs, group=pod_group())
    few = group_snapshot(pod("a"), others, theirs, group=pod_group())
    assert reported(few, nodes=(room(4),)) == {"g": "OtherGate: also held by other.dev/gate"}
    (found,) = decided(enough, nodes=(room(4),)).values()
    assert isinstance(found, Admit)
    assert sum(it.count for it in found.candidate.requests[0].shapes) == 3


def test_without_its_pod_group_it_waits_and_says_why_the_kind_cannot_be_used() -> None:
    missing, problems = group_snapshot(pod("a")), {names.PLUGINS_GROUP: "it serves v2"}
    looking = view.GroupEvaluator({key(): missing}.get, {key(): missing.group}.get, crd_problems=problems)
    answer = looking.evaluate(missing, Domains(), NOW)
    assert isinstance(answer, GroupReason)
    assert (answer.reason, answer.message[-14:]) == (names.REASON_POD_GROUP_MISSING, "; it serves v2")


def test_gangs_that_open_together_share_one_fate() -> None:
    both = gang("a", "a", "b"), gang("b", "a", "b")
    assert reported(*both, nodes=(room(1),)) == {"a": "opened", "b": "opened"}
    assert reported(both[0], nodes=(room(1),)) == {"a": "WaitingForGangGroup: team/b: not there yet"}
    found = decided(*both, nodes=(room(0),))
    assert len({id(it) for it in found.values()}) == 1
    assert all(isinstance(it, Hold) for it in found.values())


def test_while_one_gang_is_taken_back_the_others_wait() -> None:
    rolling = record((key("b", Flavor.KOORDINATOR), 1), stage=AdmissionState.ROLLING_BACK)
    other = msgspec.structs.replace(gang("b", "a", "b"), record=rolling)
    words = "WaitingForGangGroup: team/b: being taken back"
    assert reported(gang("a", "a", "b"), other, nodes=(room(9),)) == {"a": words}


def test_a_back_off_holds_a_group_that_has_room_and_gathers_and_one_that_is_given_up_waits_for_ever() -> None:
    back = taken_back("g", NOW + 5)
    assert reported(waiting("g", record=back), nodes=(room(9),)) == {"g": "RolledBack: taken back once: late"}
    assert reported(waiting("g", pods=1, record=back), nodes=(room(9),)) == {"g": "RolledBack: taken back once: late"}
    over = msgspec.structs.replace(back, not_before=NOW)
    assert reported(waiting("g", record=over), nodes=(room(9),)) == {"g": "opened"}
    given_up = msgspec.structs.replace(over, retry=False)
    assert reported(waiting("g", record=given_up), nodes=(room(9),))["g"].startswith("TimedOut: was taken back (late)")


def test_pods_of_too_many_kinds_go_one_group_at_a_time_unless_even_the_least_of_each_has_no_room() -> None:
    def mixed(name: str, kinds: int) -> GroupSnapshot:
        mine = key(name)
        pods = [pod(f"{name}-{it}", of=mine, spec=asking(f"{1000 + it}m")) for it in range(kinds)]
        return group_snapshot(*pods, of=mine, group=pod_group(name, spec={"minMember": kinds}))

    many = MAX_POD_KINDS + 1
    words = f"behind team/a, which is being placed; {MIXED} is not modelled"
    assert reported(mixed("a", many), mixed("b", many), nodes=(room(999),)) == {
        "a": "opened",
        "b": f"BehindOther: {words}",
    }
    short = f"WaitingForCapacity: needs {many} cpu, {many - 1} free"
    assert reported(mixed("a", many), nodes=(room(many - 1),)) == {"a": short}
    assert reported(mixed("a", many), nodes=(room(many - 1),), check=CapacityCheck.PROBE) == {"a": "opened"}


def test_a_resource_that_no_node_has_may_be_served_all_the_same() -> None:
    """By a DeviceClass (DRA), which shows on no node. What some node has is lacking where it is short."""
    wants = {"containers": [{"name": "main", "resources": {"limits": {"example.com/gpu": "1", "cpu": "1"}}}]}
    mine = key("g")
    seen = group_snapshot(pod("a", of=mine, spec=wants), of=mine, group=pod_group("g", spec={"minMember": 1}))
    plain = msgspec.structs.replace(room(4), empty={"cpu": 4000, "pods": 110_000, "memory": 2**50})
    found = decided(seen, nodes=(plain,))[mine]
    assert isinstance(found, Admit)
    assert not found.proven
    assert found.candidate.unsupported == ("example.com/gpu, which no node has,",)
    having = msgspec.structs.replace(plain, empty={**plain.empty, "example.com/gpu": 1000})
    assert reported(seen, nodes=(having,))["g"] == "WaitingForCapacity: needs 1 example.com/gpu, 0 free"


def test_who_was_taken_back_is_not_taken_for_proven_before_it_was_placed_once() -> None:
    """There was something that is not counted."""
    for times in (1, 0):
        back = msgspec.structs.replace(taken_back("g"), rolled_back=times)
        verdict = decided(waiting("g", record=back), nodes=(room(9),))[key("g")]
        assert isinstance(verdict, Admit)
        assert verdict.proven is (times == 0)


def test_who_was_taken_back_stands_behind_those_that_have_waited_meanwhile() -> None:
    """Or two that are tried in turn, and never come to their minimum, would leave no turn to anybody else."""
    ports = {"containers": [{"name": "main", "ports": [{"hostPort": 80}]}]}

    def tried(name: str, **more: Any) -> GroupSnapshot:
        home = pod_group(name, spec={"minMember": 1})
        return group_snapshot(pod(name, of=key(name), spec=ports), of=key(name), group=home, **more)

    found = reported(tried("first", record=taken_back("first")), tried("second"), nodes=(room(9),))
    assert found["second"] == "opened"
    assert found["first"].startswith("BehindOther: behind team/second, which is being placed")


def test_a_group_in_its_first_back_off_keeps_the_room_that_its_eviction_may_have_made() -> None:
    """Only if it was admitted without proof: a group with proven room lacked something else."""
    back = taken_back("first", NOW + 5)
    probed = msgspec.structs.replace(back, how=AdmissionMode.PROBE)
    high = [pod(f"h-{it}", of=key("first"), spec={"priority": 9}) for it in range(3)]

    def first(its: AdmissionRecord) -> GroupSnapshot:
        return group_snapshot(*high, of=key("first"), group=pod_group("first"), record=its)

    low, nodes = waiting("low"), (room(2),)
    assert reported(first(probed), low, nodes=nodes) == {
        "first": "RolledBack: taken back once: late",
        "low": "WaitingForCapacity: needs 1.5 cpu, 0.5 free",
    }
    assert reported(first(back), low, nodes=nodes)["low"] == "opened"
    assert reported(first(msgspec.structs.replace(probed, rolled_back=2)), low, nodes=nodes)["low"] == "opened"
    too_small = reported(first(probed), low, nodes=(room(1),))
    assert too_small["low"] == "WaitingForCapacity: needs 1.5 cpu, 1 free", "where the group has no room it keeps none"


def test_what_its_own_pods_have_is_not_asked_for_again() -> None:
    """What minResources asks is for the whole group: three of four are bound, and one more of them is all it takes."""
    spec = {"minMember": 4, "minResources": {"cpu": "2"}}
    seen = group_snapshot(*(bound(f"b{it}", 0, held="") for it in range(3)), pod("d"), group=pod_group("g", spec=spec))
    assert reported(seen, nodes=(room(1),), bound=lambda _: True) == {"g": "opened"}


def test_a_group_without_gated_pods_is_not_admitted() -> None:
    seen = group_snapshot(bound("a", 0, held=""), group=pod_group("g", spec={"minMember": 1}))
    assert reported(seen, nodes=(room(9),)) == {}


def test_quota_holds_a_group_as_room_does() -> None:
    found = reported(waiting("g"), nodes=(room(9),), quota_shortage=lambda _: "needs 2 cpu, 1 left in ResourceQuota q")
    assert found == {"g": "WaitingForCapacity: needs 2 cpu, 1 left in ResourceQuota q"}


def test_open_groups_are_not_spoken_of_and_take_the_room_of_what_is_not_bound() -> None:
    pods = bound("a"), opened("b"), opened("c")
    half = group_snapshot(*pods, group=pod_group("g"), record=record((key("g"), 1), minimum=3))
    small = waiting("small", pods=2, minimum=2)
    assert reported(half, small, nodes=(room(1),)) == {"small": "WaitingForCapacity: needs 1 cpu, 0 free"}
    assert reported(half, small, nodes=(room(2),), bound=lambda uid: uid == "uid-a") == {"small": "opened"}


def counted(
    seen: GroupSnapshot, now: float, *, bound_uids: tuple[str, ...] = (), before: tuple[PodShape, ...] = ()
) -> list[tuple[int, bool, bool]]:
    """(Pods, proven, placed) of what is counted."""
    found = reserved_for(seen, lambda uid: uid in bound_uids, Domains(), now, before)
    return [
        (sum(shape.count for it in one.requests for shape in it.shapes), one.proven, one.best_effort) for one in found
    ]


def test_a_surplus_is_counted_as_long_as_it_waits_and_needs_no_place() -> None:
    """It takes a node that joins before anybody else does. Who waits for something else than room, only for a while."""
    done = record((key("g"), 1), minimum=1, satisfied=TEN_O_CLOCK)
    seen = group_snapshot(bound("a"), opened("b"), opened("c"), record=done)
    assert counted(seen, TEN_O_CLOCK + 1, bound_uids=("uid-a",)) == [(2, True, True)]
    assert counted(seen, TEN_O_CLOCK + 10**6, bound_uids=("uid-a",)) == [(2, True, True)]
    claims = {"containers": [{"name": "main"}], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
    odd = group_snapshot(bound("a"), opened("b", spec=claims), record=done)
    assert counted(odd, TEN_O_CLOCK + 1, bound_uids=("uid-a",)) == [(1, True, True)]
    assert counted(odd, TEN_O_CLOCK + UNSUPPORTED_GRACE_SECONDS, bound_uids=("uid-a",)) == []


def test_a_group_that_is_marked_gives_up_its_place_in_time() -> None:
    late = record((key("g"), 1), minimum=2, marked=True)
    seen = group_snapshot(bound("a"), opened("b"), record=late)
    assert counted(seen, TEN_O_CLOCK + 61, bound_uids=("uid-a",)) == [(1, True, False)]
    assert counted(seen, TEN_O_CLOCK + 60 + AFTER_DEADLINE_SECONDS, bound_uids=("uid-a",)) == [(1, True, True)]


def test_members_that_have_gone_are_counted_until_the_minimum_is_bound() -> None:
    """As large as they were: who comes in the place of one that is gone needs as much."""
    big = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "4", "memory": "1Gi"}}}]}
    decided = record((key("g"), 1), minimum=4)
    whole = group_snapshot(bound("a"), opened("b", spec=big), opened("c"), opened("d"), record=decided)
    before = living_shapes(whole, Domains())
    half = group_snapshot(bound("a"), opened("d"), record=decided)
    assert counted(half, NOW, bound_uids=("uid-a",), before=before) == [(1, True, False), (2, True, False)]
    gone = reserved_for(half, lambda it: it == "uid-a", Domains(), NOW, before)[1]
    assert [(it.requests["cpu"], it.count) for it in gone.requests[0].shapes] == [(4000, 1), (500, 1)]
    changes: list[dict[str, Any]] = [{"satisfied": NOW}, {"minimum": 2}, {"stage": AdmissionState.ROLLING_BACK}]
    for change in changes:
        done = msgspec.structs.replace(half, record=msgspec.structs.replace(decided, **change))
        assert sum(many for many, *_ in counted(done, NOW, bound_uids=("uid-a",), before=before)) == 1


def test_a_record_reserves_nothing_for_pods_that_nobody_has_seen() -> None:
    """Its user may write any number there."""
    forged = record((key("g"), 1), minimum=10**6, many=10**6)
    one = group_snapshot(opened("a"), record=forged)
    assert counted(one, NOW) == [(1, True, False)]
    assert counted(group_snapshot(bound("a"), record=forged), NOW, bound_uids=("uid-a",)) == []


def test_ungated_pods_without_a_record_are_an_unproven_admission_until_they_are_bound() -> None:
    stray = group_snapshot(opened("a"), group=pod_group("g"))
    assert counted(stray, NOW) == [(1, False, False)]
    assert counted(group_snapshot(bound("a"), group=pod_group("g")), NOW, bound_uids=("uid-a",)) == []
    assert counted(stray, TEN_O_CLOCK + 60 + AFTER_DEADLINE_SECONDS) == [(1, False, True)]
    forged = group_snapshot(opened("a", at=TEN_O_CLOCK + 10**9), group=pod_group("g"))
    assert counted(forged, NOW) == [(1, False, True)], "nobody of us has opened it in the far future"
    again = group_snapshot(opened("a"), opened("b", 2), group=pod_group("g"), record=record((key("g"), 2), minimum=1))
    assert counted(again, NOW) == [(1, True, False), (1, False, False)]
