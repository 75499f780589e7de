"""What becomes of groups that are not open: each waits for one reason, or is a candidate (G3)."""

from __future__ import annotations

from typing import Any

import msgspec

from jobset_gate import names
from jobset_gate.groups import outlook as view
from jobset_gate.groups.candidates import Check, Hold, Open
from jobset_gate.groups.certainty import Room
from jobset_gate.groups.creators import Creator
from jobset_gate.groups.domains import Domains
from jobset_gate.groups.model import Design
from jobset_gate.groups.outlook import outlook
from jobset_gate.groups.outstanding import MARKED_SECONDS, SURPLUS_SECONDS, outstanding
from jobset_gate.groups.record import How, Stage
from jobset_gate.groups.seen import GroupSeen
from jobset_gate.groups.selection import Node, Selection
from jobset_gate.groups.standing import Standing
from tests.jobset_gate.groups.builders import GANG
from tests.jobset_gate.groups.objects import TEN_O_CLOCK, key, pod, pod_group, record
from tests.jobset_gate.groups.seeing import bound, group_seen, opened

NOW = TEN_O_CLOCK + 100


def room(cpu: int, name: str = "n") -> Room:
    return Room(node=Node(name=name, labels={}), free={"cpu": cpu * 1000, "memory": 2**50, "pods": 110_000})


def waiting(name: str, pods: int = 3, minimum: int = 3, **more: Any) -> GroupSeen:
    """A group of scheduler-plugins whose pods ask for half a processor each."""
    mine = key(name)
    members = [pod(f"{name}-{number}", of=mine) for number in range(pods)]
    return group_seen(*members, of=mine, group=pod_group(name, spec={"minMember": minimum}), **more)


def gang(name: str, *listed: str, pods: int = 1) -> GroupSeen:
    """A gang of Koordinator's annotations."""
    mine = key(name, Design.KOORDINATOR)
    gangs = ",".join(f'"team/{it}"' for it in listed)
    notes = {f"{GANG}name": name, f"{GANG}min-available": "1"} | ({f"{GANG}groups": f"[{gangs}]"} if listed else {})
    return group_seen(*(pod(f"{name}-{it}", of=mine, labels={}, notes=notes) for it in range(pods)), of=mine)


def told(*seen: GroupSeen, rooms: tuple[Room, ...] = (), check: Check = Check.FIT, **more: Any) -> dict[str, str]:
    """By name: `opened`, or reason and message."""
    found = outlook(seen, rooms, check=check, starvation_seconds=300, now=NOW, **more)
    return {key.name: "opened" if isinstance(it, Open) else f"{it.reason}: {it.message}" for key, it in found.items()}


def test_each_group_has_one_reason() -> None:
    found = told(waiting("whole"), waiting("few", pods=2), waiting("big", pods=9, minimum=9), rooms=(room(4),))
    assert found == {
        "whole": "opened",
        "few": "Gathering: 2/3 pods exist",
        "big": "WaitingForCapacity: needs 4.5 cpu, 4 free",
    }


def test_without_its_pod_group_it_waits_and_says_why_the_kind_cannot_be_used() -> None:
    mine = key("g")
    missing = group_seen(pod("a"), of=mine)
    looking = view.Outlook({mine: missing}.get, {mine: missing.group}, trouble={names.PLUGINS_GROUP: "it serves v2"})
    answer = looking.of(missing, Domains(), NOW)
    assert isinstance(answer, Standing)
    assert answer.reason == names.REASON_POD_GROUP_MISSING
    assert answer.message.endswith("; it serves v2")


def test_makers_that_can_never_make_enough_are_named() -> None:
    few = waiting("few", pods=1)
    made_by = {key("few"): (Creator(kind="Job", name="w", at_once=2),)}
    assert told(few, creators=made_by)["few"].startswith("CannotGather: needs 3 pods at once, 2 can be there")


def test_gangs_that_open_together_share_one_fate() -> None:
    both = gang("a", "a", "b"), gang("b", "a", "b")
    assert told(*both, rooms=(room(1),)) == {"a": "opened", "b": "opened"}
    assert told(both[0], rooms=(room(1),)) == {"a": "WaitingForGangGroup: team/b: not there yet"}
    found = outlook(both, (room(0),), check=Check.FIT, starvation_seconds=300, now=NOW)
    assert len({id(it) for it in found.values()}) == 1
    assert all(isinstance(it, Hold) for it in found.values())


def test_while_one_gang_is_taken_back_the_others_wait() -> None:
    other = msgspec.structs.replace(
        gang("b", "a", "b"), record=record((key("b", Design.KOORDINATOR), 1), stage=Stage.ROLLING_BACK)
    )
    assert told(gang("a", "a", "b"), other, rooms=(room(9),)) == {"a": "WaitingForGangGroup: team/b: being taken back"}


def test_a_back_off_holds_a_group_that_has_room_and_gathers() -> None:
    back = record((key("g"), 1), stage=Stage.CLOSED, rolled_back=1, not_before=NOW + 5, why="late")
    assert told(waiting("g", record=back), rooms=(room(9),)) == {"g": "RolledBack: taken back once: late"}
    assert told(waiting("g", pods=1, record=back), rooms=(room(9),)) == {"g": "RolledBack: taken back once: late"}
    over = msgspec.structs.replace(back, not_before=NOW)
    assert told(waiting("g", record=over), rooms=(room(9),)) == {"g": "opened"}


def test_what_is_given_up_is_not_opened_again() -> None:
    gone = record((key("g"), 1), stage=Stage.CLOSED, rolled_back=1, retry=False, why="late")
    assert told(waiting("g", record=gone), rooms=(room(9),))["g"].startswith("TimedOut: was taken back (late)")


def test_quota_holds_a_group_as_room_does() -> None:
    found = told(waiting("g"), rooms=(room(9),), short_of_quota=lambda _: "needs 2 cpu, 1 left in ResourceQuota q")
    assert found == {"g": "WaitingForCapacity: needs 2 cpu, 1 left in ResourceQuota q"}


def test_open_groups_are_not_spoken_of_and_take_the_room_of_what_is_not_bound() -> None:
    half = group_seen(
        bound("a"), opened("b"), opened("c"), group=pod_group("g"), record=record((key("g"), 1), minimum=3)
    )
    small = waiting("small", pods=2, minimum=2)
    assert told(half, small, rooms=(room(1),)) == {"small": "WaitingForCapacity: needs 1 cpu, 0 free"}
    assert told(half, small, rooms=(room(2),), bound=lambda uid: uid == "uid-a") == {"small": "opened"}


def test_bound_members_lessen_what_is_to_be_placed() -> None:
    """Ungated ones, or those of a PodGroup that was made anew."""
    seen = group_seen(bound("a", 0, held=""), pod("b"), group=pod_group("g", spec={"minMember": 2}))
    assert told(seen, rooms=(room(1),), bound=lambda _: True) == {"g": "opened"}


def test_a_group_of_which_our_gate_holds_nobody_is_not_opened() -> None:
    seen = group_seen(bound("a", 0, held=""), group=pod_group("g", spec={"minMember": 1}))
    assert told(seen, rooms=(room(9),)) == {}


def reckoned(seen: GroupSeen, now: float, *, bound_uids: tuple[str, ...] = ()) -> list[tuple[int, bool, bool]]:
    """(Pods, proven, placed) of what is reckoned with."""
    found = outstanding(seen, lambda uid: uid in bound_uids, Domains(), now)
    return [(sum(shape.count for it in one.demands for shape in it.shapes), one.proven, one.placed) for one in found]


def test_a_surplus_is_reckoned_with_for_half_a_minute_and_needs_no_place() -> None:
    done = record((key("g"), 1), minimum=1, satisfied=TEN_O_CLOCK)
    seen = group_seen(bound("a"), opened("b"), opened("c"), record=done)
    assert reckoned(seen, TEN_O_CLOCK + 1, bound_uids=("uid-a",)) == [(2, True, True)]
    assert reckoned(seen, TEN_O_CLOCK + SURPLUS_SECONDS, bound_uids=("uid-a",)) == []


def test_a_pod_with_a_node_keeps_its_room_until_the_node_has_less_of_it() -> None:
    done = record((key("g"), 1), minimum=1, satisfied=TEN_O_CLOCK)
    seen = group_seen(bound("a"), record=msgspec.structs.replace(done, how=How.PROBE))
    assert reckoned(seen, TEN_O_CLOCK + 3600) == [(1, True, False)]
    assert reckoned(seen, TEN_O_CLOCK + 3600, bound_uids=("uid-a",)) == []


def test_a_group_that_is_marked_gives_up_its_claim_in_time() -> None:
    late = record((key("g"), 1), minimum=2, marked=True)
    seen = group_seen(bound("a"), opened("b"), record=late)
    assert reckoned(seen, TEN_O_CLOCK + 61, bound_uids=("uid-a",)) == [(1, True, False)]
    assert reckoned(seen, TEN_O_CLOCK + 60 + MARKED_SECONDS, bound_uids=("uid-a",)) == []


def test_members_that_are_missing_are_reckoned_with_until_the_minimum_is_bound() -> None:
    """As large as the largest: who comes in the place of one that is gone needs as much."""
    big = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "4", "memory": "1Gi"}}}]}
    decided = record((key("g"), 1), minimum=4)
    half = group_seen(bound("a"), bound("b", spec=big | {"nodeName": "n"}), record=decided)
    all_bound = ("uid-a", "uid-b")
    assert reckoned(half, NOW, bound_uids=all_bound) == [(2, True, False)]
    (found,) = outstanding(half, lambda _: True, Domains(), NOW)
    assert found.demands[0].shapes[0].requests["cpu"] == 4000
    changes: list[dict[str, Any]] = [{"satisfied": NOW}, {"minimum": 2}, {"stage": Stage.ROLLING_BACK}]
    for change in changes:
        done = msgspec.structs.replace(half, record=msgspec.structs.replace(decided, **change))
        assert reckoned(done, NOW, bound_uids=all_bound) == []


def test_opened_pods_of_which_no_record_tells_are_a_doubtful_opening_until_they_are_bound() -> None:
    stray = group_seen(opened("a"), group=pod_group("g"))
    assert reckoned(stray, NOW) == [(1, False, False)]
    assert reckoned(group_seen(bound("a"), group=pod_group("g")), NOW, bound_uids=("uid-a",)) == []
    assert reckoned(stray, TEN_O_CLOCK + 60 + MARKED_SECONDS) == []
    forged = group_seen(opened("a", at=TEN_O_CLOCK + 10**9), group=pod_group("g"))
    assert reckoned(forged, NOW) == [], "nobody of us has opened it in the far future"
    anew = group_seen(opened("a"), opened("b", 2), group=pod_group("g"), record=record((key("g"), 2), minimum=1))
    assert reckoned(anew, NOW) == [(1, True, False), (1, False, False)]


def test_nodes_of_one_demand_are_one_domain() -> None:
    domains = Domains([Node(name="n", labels={})])
    (shape,) = [it.shape for it in waiting("g").members][:1]
    assert domains.of([shape]) is domains.of([shape])
    assert domains.of([shape]) == {"n"}
    assert Selection() == shape.selection
