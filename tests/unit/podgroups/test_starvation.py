"""Who is held back for a group that has waited too long: who would take what that one lacks, and for a while (G3)."""

from __future__ import annotations

from typing import Any

import msgspec

from jobset_gate.podgroups.candidate import Candidate, Hold
from jobset_gate.podgroups.starvation import ROUND_PARTS
from tests.unit.podgroups.test_cycle import NOW, STARVATION, gang, judged, opened, reported, room, waiting

GPU = "nvidia.com/gpu"


def starved(name: str, pods: int, asked: dict[str, int], **more: Any) -> Candidate:
    return gang(name, pods, asked, **{"created": 1.0, "ready_since": NOW - STARVATION, **more})


def test_a_gang_that_queues_for_gpus_stops_no_gang_that_wants_none() -> None:
    """Its own kind is held back, and the reason says for what."""
    nodes = [room("n", {"cpu": 8, GPU: 2}, {"cpu": 8, GPU: 4})]
    found = reported(
        starved("gpus", 4, {"cpu": 1, GPU: 1}), gang("cpus", 4, {"cpu": 1}), gang("one", 1, {GPU: 1}), nodes=nodes
    )
    assert found == {
        "gpus": f"WaitingForCapacity: needs 4 {GPU}, 2 free",
        "cpus": "opened",
        "one": f"BehindOther: behind team/gpus, which has waited too long for {GPU} to be passed",
    }


def test_nor_one_that_runs_where_it_cannot() -> None:
    """It named no pool, so its domain is all nodes; what it lacks is on those that have what it wants."""
    nodes = [
        room("g", {"cpu": 0, GPU: 2}, {"cpu": 8, GPU: 4}, pool="gpus"),
        room("c", {"cpu": 4}, {"cpu": 8}, pool="cpus"),
    ]
    gpus = starved("gpus", 4, {"cpu": 1, GPU: 1}, on="gc")
    assert reported(gpus, gang("cpus", 4, {"cpu": 1}, on="c", pool="cpus"), nodes=nodes)["cpus"] == "opened"
    assert reported(gpus, gang("any", 4, {"cpu": 1}, on="gc"), nodes=nodes)["any"] == "opened", (
        "there is room elsewhere only"
    )


def test_gangs_with_one_that_can_never_fit_hold_nobody_back_however_many_nodes_the_other_could_have() -> None:
    nodes = [room("g", {"cpu": 0}, {"cpu": 2}, pool="small"), room("c", {"cpu": 4}, {"cpu": 99}, pool="large")]
    one, other = starved("one", 3, {"cpu": 1}, on="gc", pool="small"), starved("two", 9, {"cpu": 1}, pool="large")
    both = msgspec.structs.replace(one, requests=(*one.requests, *other.requests))
    assert reported(both, gang("next", 4, {"cpu": 1}, on="c"), nodes=nodes)["next"] == "opened"


def test_what_its_pods_could_have_but_not_on_one_node_is_kept_as_a_whole() -> None:
    nodes = [
        room("n", {"cpu": 4, "memory": 0}, {"cpu": 4, "memory": 4}),
        room("m", {"cpu": 0, "memory": 4}, {"cpu": 4, "memory": 4}),
    ]
    large = starved("large", 1, {"cpu": 2, "memory": 2}, on="nm")
    small = gang("small", 1, {"cpu": 1}, on="nm")
    assert reported(large, small, nodes=nodes)["small"] == (
        "BehindOther: behind team/large, which has waited too long for cpu, memory, pods to be passed"
    )


def test_what_a_pod_group_wants_beyond_its_pods_is_reported_and_kept_from_nobody() -> None:
    nodes = [room("n", {"cpu": 30}, {"cpu": 32})]
    tiny = starved("greedy", 1, {"cpu": 1})
    wants = msgspec.structs.replace(tiny.requests[0], resources={"cpu": 32_000})
    greedy = msgspec.structs.replace(tiny, requests=(wants,))
    assert reported(greedy, gang("honest", 2, {"cpu": 1}), nodes=nodes) == {
        "greedy": "WaitingForCapacity: needs 32 cpu, 30 free",
        "honest": "opened",
    }
    large = msgspec.structs.replace(starved("large", 31, {"cpu": 1}).requests[0], resources={"cpu": 32_000})
    both = msgspec.structs.replace(tiny, requests=(large,))
    assert reported(both, gang("honest", 2, {"cpu": 1}), nodes=nodes)["honest"].startswith(
        "BehindOther: behind team/large"
    )


def test_nobody_is_held_back_for_ever() -> None:
    """The privilege ends, and comes again; nor is a group with room held back for longer, whichever is in front."""
    nodes = [room("n", {"cpu": 4}, {"cpu": 8})]
    large, late = starved("large", 8, {"cpu": 1}, ready_since=NOW), gang("late", 1, {"cpu": 1}, created=NOW)

    def at(parts: float, since: float) -> bool:
        """Whether one that came after so many parts is held back then."""
        now = NOW + parts * STARVATION
        one = msgspec.structs.replace(late, ready_since=NOW + since * STARVATION)
        return reported(large, one, nodes=nodes, now=now)["late"] != "opened"

    assert [at(parts, parts) for parts in (0.9, 1, 2.9, 3, 3.9, 4, 5.9, 6)] == [
        *(False, True, True),
        *(False, False, True, True, False),
    ]
    crowd = [starved(f"s{it}", 8, {"cpu": 1}, ready_since=NOW - it * STARVATION / 2) for it in range(9)]
    held = [
        reported(*crowd, late, nodes=nodes, now=NOW + tenths * STARVATION / 10)["late"] != "opened"
        for tenths in range(10 * ROUND_PARTS)
    ]
    assert held == [True] * 20 + [False] * 10


def test_what_a_later_group_lacks_does_not_include_the_room_of_those_opened_before_it() -> None:
    """Two wait too long, one for memory and one for processors; between them another is opened."""
    nodes = [room("n", {"cpu": 5, "memory": 0}, {"cpu": 9, "memory": 9})]
    first = starved("first", 1, {"memory": 4})
    opened_between = gang("between", 2, {"cpu": 1}, created=2.0)
    second = starved("second", 4, {"cpu": 1}, created=3.0)
    found = reported(first, opened_between, second, gang("late", 1, {"cpu": 1}), nodes=nodes)
    assert found["between"] == "opened"
    assert found["late"] == "BehindOther: behind team/second, which has waited too long for cpu to be passed"


def test_a_higher_priority_ends_the_try_of_a_lower_one() -> None:
    """Once it has had the time that placing takes; one without priority over it names the group that it waits for."""
    nodes = [room("n", {"cpu": 4})]
    tried = opened(waiting("low", 9, unsupported=("host ports",)), proven=False)
    tried = msgspec.structs.replace(tried, priority=10, admitted_at=NOW - 60)
    high = waiting("high", 1, priority=1000, unsupported=("host ports",))
    verdict = judged(high, nodes=nodes, standing=(tried,))["high"]
    assert isinstance(verdict, Hold)
    assert verdict.must_yield == (tried.key,)
    assert verdict.message == "behind team/low, which is being placed; host ports is not modelled"
    fresh = msgspec.structs.replace(tried, admitted_at=NOW - 1)
    for other, standing in ((high, fresh), (msgspec.structs.replace(high, priority=10), tried)):
        verdict = judged(other, nodes=nodes, standing=(standing,))["high"]
        assert isinstance(verdict, Hold)
        assert verdict.must_yield == ()


def test_what_was_proven_and_has_no_room_any_more_is_kept_no_room() -> None:
    """Or anybody might write of his pods that they are."""
    nodes = [room("n", {"cpu": 8}, {"cpu": 32})]
    said = opened(waiting("said", 30), proven=True)
    assert reported(gang("honest", 1, {"cpu": 1}), nodes=nodes, standing=(said,))["honest"] != "opened", (
        "they take what there is"
    )
    large = opened(waiting("said", 4, cpu=9), proven=True)
    assert reported(gang("honest", 8, {"cpu": 1}), nodes=nodes, standing=(large,))["honest"] == "opened"
