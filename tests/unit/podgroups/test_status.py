"""The status of a group: one phase, one reason and one message, and its Events (G5)."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.podgroups.candidate import Hold
from jobset_gate.podgroups.events import group_events
from jobset_gate.podgroups.model import Flavor
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.podgroups.status import GroupStatus, MemberCounts, Phase, group_phase, group_status
from tests.fakes.podgroups.objects import TEN_O_CLOCK, key, pod, pod_group, record
from tests.fakes.podgroups.snapshots import KEP24_KEY, bound, group_snapshot, kep24_pod, opened
from tests.fakes.podgroups.sources import PLUGINS, Json, alibaba

G = key()
STAR = key(flavor=Flavor.ALIBABA)
OPEN = record((G, 1))
BACK = record((G, 1), stage=AdmissionState.ROLLING_BACK, why="1 of 3 pods were bound within 60s")
CLOSED = record((G, 1), stage=AdmissionState.CLOSED, why="x", rolled_back=2, not_before=TEN_O_CLOCK + 40)
MARKED = record((G, 1), marked=True)
NOTHING_BACK = "its mode is NonStrict, so nothing is taken back"
HALF = (bound("a"), opened("b"), opened("c"))
NO_ROOM = GroupReason(reason="WaitingForCapacity", message="needs 4 cpu, 2 free")
AGAIN = "1/3 pods are bound; 2 were opened before its PodGroup was created again, so no limit runs for them"
THREE = (bound("a"), bound("b"), bound("c"))
SATISFIED = record((G, 1), satisfied=TEN_O_CLOCK + 2)
BARE = "nobody would make them again, so they are left to you to delete: a, b"
OWNED: Json = {"ownerReferences": [{"kind": "Job", "name": "j", "uid": "u", "controller": True}]}
NOW = TEN_O_CLOCK + 30


def of(
    *pods: Json, now: float = NOW, why: GroupReason | Hold | None = None, blocked: str = "", **more: Any
) -> GroupStatus:
    """The report of a group of three with its PodGroup."""
    return group_status(group_snapshot(*pods, **({"group": pod_group()} | more)), now, why, blocked)


def test_what_koordinators_annotations_ask_for_in_vain_is_reported() -> None:
    """With Alibaba's labels, which make another group of it; and those that nobody knows here, on a PodGroup too."""
    prefix = "gang.scheduling.koordinator.sh/"
    notes = {prefix + "mode": "NonStrict", prefix + "timeout": "true"}
    lone = group_status(group_snapshot(pod("a", of=STAR, labels=alibaba("g", "1"), notes=notes), of=STAR), NOW)
    assert [(it.reason, it.message) for it in group_events(lone) if it.warning] == [
        ("NotHeeded", f"ignored: {prefix}mode")
    ]
    home = pod_group(notes={prefix + "match-policy": "once-satisfied", prefix + "mode": "Strict"})
    found = of(pod("a"), group=home)
    assert [it.message for it in group_events(found) if it.reason == "NotHeeded"] == [f"ignored: {prefix}match-policy"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (of(pod("a")), (Phase.PENDING, "Gathering", "1/3 pods exist")),
        (of(pod("a"), pod("b"), pod("c")), (Phase.PENDING, "Gathered", "3/3 pods exist, nothing holds it up")),
        # Past us: nobody held them, or the PodGroup is not the one that they were opened for.
        (
            of(*(pod(it, gates=(), node="n", status={"phase": "Running"}) for it in "abc")),
            (Phase.RUNNING, "Running", "3 of 3 pods run; Ungated: a, b, c"),
        ),
        (of(*THREE), (Phase.RUNNING, "Running", "3 of 3 pods run")),
        (of(*HALF), (Phase.PENDING, "Gathered", AGAIN)),
        (of(*THREE, pod("d"), why=NO_ROOM), (Phase.RUNNING, "WaitingForCapacity", "needs 4 cpu, 2 free")),
        (of(pod("a"), why=NO_ROOM), (Phase.PENDING, "WaitingForCapacity", "needs 4 cpu, 2 free")),
        (of(opened("a"), opened("b"), opened("c"), record=OPEN), (Phase.PENDING, "Placing", "0/3 pods are bound")),
        (of(*HALF, record=OPEN), (Phase.SCHEDULING, "Placing", "1/3 pods are bound")),
        (of(*HALF, record=OPEN, now=NOW + 60), (Phase.UNKNOWN, "TimedOut", "1/3 pods are bound within 60s")),
        (
            of(bound("a"), opened("b"), record=record((G, 1), extended=True), now=TEN_O_CLOCK + 119),
            (Phase.SCHEDULING, "Placing", "1/3 pods are bound"),
        ),
        (
            of(bound("a"), opened("b"), record=MARKED, now=NOW + 60),
            (Phase.UNKNOWN, "TimedOut", f"1/3 pods are bound within 60s; {NOTHING_BACK}"),
        ),
        (
            of(bound("a", phase="Pending"), bound("b"), bound("c"), record=OPEN),
            (Phase.SCHEDULING, "Satisfied", "3/3 pods are bound; 2 of 3 pods run"),
        ),
        (
            of(*(bound(it, phase="Succeeded") for it in "abc"), record=SATISFIED),
            (Phase.FINISHED, "Finished", "all 3 pods have succeeded"),
        ),
        (
            of(bound("a", phase="Failed"), bound("b"), bound("c"), record=SATISFIED),
            (Phase.FAILED, "Failed", "1 failed; 2 of 3 pods run"),
        ),
        (
            of(bound("a", meta=OWNED), opened("b"), record=BACK),
            (Phase.UNKNOWN, "RolledBack", "is being taken back: 1 of 3 pods were bound within 60s; pods left: 2"),
        ),
        (of(*THREE, record=BACK, blocked="Kueue's"), (Phase.UNKNOWN, "RollbackBlocked", "Kueue's")),
        (of(bound("a"), bound("b"), record=BACK), (Phase.UNKNOWN, "RollbackBlocked", BARE)),
        (
            of(pod("a"), record=CLOSED),
            (Phase.PENDING, "RolledBack", "taken back 2 times: x; not opened again before 10:00:40Z"),
        ),
    ],
)
def test_a_group_has_one_reason(given: GroupStatus, wanted: tuple[Phase, str, str]) -> None:
    assert (given.phase, given.reason, given.message) == wanted


def test_the_schedulers_words_are_reported_while_pods_are_placed() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/5 nodes"}
    stuck = opened("b", status={"phase": "Pending", "conditions": [condition]})
    words = "missing: 1 pod: Unscheduled: 0/5 nodes (b)"
    assert of(bound("a"), stuck, record=OPEN).message == f"1/3 pods are bound; {words}"


def test_pods_of_an_earlier_generation_that_have_ended_are_not_counted() -> None:
    again = record((G, 2))
    given = of(bound("old", phase="Failed"), bound("a", 2), bound("b", 2), bound("c", 2), record=again)
    assert (given.counts.bound, given.counts.failed, given.phase) == (3, 0, Phase.RUNNING)


def test_the_minimum_is_the_one_that_was_decided_on_whatever_the_pod_group_says_by_now() -> None:
    given = of(*THREE, record=SATISFIED, group=pod_group(spec={"minMember": 9}))
    assert (given.counts.minimum, given.phase) == (3, Phase.RUNNING)
    without = of(*THREE, record=SATISFIED, group=None)
    assert (without.counts.minimum, without.reason) == (3, "Running")


def test_members_that_were_never_held_and_those_that_say_something_else_are_named() -> None:
    stray = pod("stray", gates=(), held="", node="n", status={"phase": "Running"})
    turned = pod("turned", labels={PLUGINS: "other"}, held=group_snapshot().label)
    given = of(stray, turned, pod("a"))
    assert [it.name for it in (*given.ungated, *given.moved)] == ["stray", "turned"]
    assert "Ungated: stray" in given.message
    assert "not followed: turned" in given.message
    assert (given.counts.bound, given.counts.present) == (1, 3)


def test_people_who_mend_a_status_are_no_controller_of_it() -> None:
    group = pod_group()
    managers = ("kubectl-edit", "coscheduler")
    group["metadata"]["managedFields"] = [{"manager": it, "subresource": "status"} for it in managers]
    assert of(pod("a"), group=group).managers == ("coscheduler",)


# --- Events ----------------------------------------------------------------------------------------------------------


def facts(given: GroupStatus, now: float = 2e9) -> dict[str, list[str]]:
    """Reason to the objects that bear an Event of it, "" for the PodGroup; of those that are due."""
    found: dict[str, list[str]] = {}
    for fact in group_events(given):
        if fact.not_before <= now:
            bearers = [""] if fact.on_group and given.pod_group is not None else []
            found.setdefault(fact.reason, []).extend([*bearers, *(it.name for it in fact.pods)])
    return found


def test_what_has_happened_is_reported_on_the_group() -> None:
    assert facts(of(*THREE, record=OPEN)) == {"Opened": [""]}
    assert facts(of(*THREE, record=SATISFIED)) == {"Opened": [""], "Satisfied": [""]}
    assert facts(of(pod("a"), record=CLOSED), NOW) == {"RolledBack": [""]}


def test_a_group_without_a_pod_group_is_reported_on_its_first_pod() -> None:
    seen = group_snapshot(*(pod(it, of=STAR, labels=alibaba("g", "2")) for it in ("b", "a")), of=STAR)
    assert facts(group_status(seen, NOW, NO_ROOM)) == {"WaitingForCapacity": ["a"]}


def test_what_is_wrong_is_reported_on_the_group_and_on_a_handful_of_the_pods_to_blame() -> None:
    why = GroupReason(reason=names.REASON_INVALID_GROUP, message="bad")
    many = of(*(pod(f"p{number}") for number in range(9)), why=why)
    assert facts(many) == {"InvalidGroup": ["", "p0", "p1", "p2", "p3", "p4"]}
    nameless = pod("guilty", labels={PLUGINS: "g", "pod-group.scheduling.sigs.k8s.io/name": "other"})
    assert facts(of(pod("a"), nameless, why=why)) == {"InvalidGroup": ["", "guilty"]}


@pytest.mark.parametrize(
    ("reason", "one", "other", "same"),
    [
        ("PodGroupMissing", "2 pods name PodGroup a/b", "3 pods name PodGroup a/b", True),
        ("PodGroupMissing", "2 pods name it", "2 pods name it; the CRD serves v1beta1", False),
        ("InvalidGroup", "2 by a; 3 by b", "2 by a; 4 by b", False),
        ("TimedOut", "0/3 pods are bound", "1/3 pods are bound; pod x: 0/5 nodes", True),
    ],
)
def test_texts_that_only_count_on_are_the_same_fact(reason: str, one: str, other: str, same: bool) -> None:
    why = (GroupReason(reason=reason, message=text) for text in (one, other))
    assert (len({group_events(of(pod("a"), why=it))[0].dedup_key for it in why}) == 1) == same


def kep_seen(*pods: Json, minimum: int = 3, **more: Any) -> GroupSnapshot:
    return group_snapshot(*pods, of=KEP24_KEY, group=pod_group(spec={"minMembers": minimum}), **more)


def test_pods_of_a_small_kep_24_group_are_unschedulable() -> None:
    pods = kep24_pod("a"), kep24_pod("b")
    given = group_status(kep_seen(*pods), NOW)
    assert facts(given, TEN_O_CLOCK + 4) == {}
    assert facts(given, TEN_O_CLOCK + 5) == {"Unschedulable": ["a", "b"]}
    assert facts(group_status(kep_seen(*pods, minimum=2), NOW)) == {}
    never = GroupReason(reason=names.REASON_CANNOT_GATHER, message="needs 3 pods at once, 2 can be there")
    assert facts(group_status(kep_seen(*pods), NOW, never))["Unschedulable"] == ["a", "b"]
    assert "Unschedulable" not in facts(of(pod("a")))


def test_a_pod_with_an_empty_group_name_is_to_be_created_again() -> None:
    nameless = kep24_pod("a", group="")
    seen = group_snapshot(nameless, of=key("", KEP24_KEY.flavor))
    given = group_status(seen, NOW, GroupReason(reason="InvalidGroup", message="x"))
    assert facts(given)["Unschedulable"] == ["a"]


def test_a_kep_24_group_that_has_become_too_small_while_some_run_is_unschedulable() -> None:
    def running(name: str, phase: str = "Running") -> Json:
        return kep24_pod(name, gates=(), node="n", status={"phase": phase}, meta={"annotations": noted})

    noted = {"scheduling.k8s.io/group-name": "g", names.POD_GROUP_OPENED: "1 2026-08-01T10:00:00Z"}
    done = record((KEP24_KEY, 1), satisfied=TEN_O_CLOCK)
    assert facts(group_status(kep_seen(running("a"), kep24_pod("b"), record=done), NOW))["Unschedulable"] == [""]
    whole, nobody_runs = (running("a"), running("c", "Succeeded")), (running("a", "Succeeded"),)
    for others in (whole, nobody_runs):
        assert "Unschedulable" not in facts(group_status(kep_seen(*others, kep24_pod("b"), record=done), NOW))


def test_what_others_say_of_a_group_brings_no_control_characters_into_its_condition() -> None:
    """A scheduler quotes names of nodes and volumes, a pod's annotation is quoted where it is wrong."""
    why = GroupReason(reason="InvalidGroup", message="mode: must be Strict, not '\x1b]52;c;eA==\x07\u202e'\nand more")
    assert of(pod("a"), why=why).message == "mode: must be Strict, not '^[]52;c;eA==^G\\u202e' and more"


def counts(**more: Any) -> MemberCounts:
    """An opened group of three of three."""
    said: dict[str, Any] = {"minimum": 3, "present": 3, "opened": True}
    return MemberCounts(**(said | more))


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        (counts(opened=False, bound=2, failed=1), Phase.PENDING),
        (counts(deadline_passed=True), Phase.PENDING),
        (counts(bound=2, running=2), Phase.SCHEDULING),
        (counts(bound=3, running=2, succeeded=1), Phase.RUNNING),
        (counts(bound=5, present=5, succeeded=3, running=2), Phase.RUNNING),
        (counts(bound=3, present=3, succeeded=3, failed=1), Phase.FINISHED),
        (counts(evicting=True), Phase.PENDING),
    ],
)
def test_a_phase_follows_from_the_facts(seen: MemberCounts, wanted: Phase) -> None:
    assert group_phase(seen) is wanted
