"""What a pod says of its start group, and what all of them are together: workload, one Job, and pods (K2, K5)."""

from typing import Any

import msgspec
import pytest

from jobset_gate.barrier import count, verdict_codec, wire
from jobset_gate.barrier.decide import decide
from jobset_gate.barrier.decision import Decide, Wait
from jobset_gate.barrier.member import Membership
from jobset_gate.barrier.model import GangSnapshot, WorkloadSeen
from jobset_gate.sources import startgroup
from tests.fakes.gangs import decided
from tests.fakes.present import present
from tests.fakes.start_group_controller import OWNER, PASSED, RING, RUNS, STATEFUL_SET, addressed, member, read_member
from tests.fakes.wire_objects import TEN_O_CLOCK, Json, owner, read_config_map

NOW = TEN_O_CLOCK + 60
CONFIG = "jobset-gate.dev/group-scheduling-config"


def decoded(body: Json) -> Any:
    return startgroup.pod(msgspec.json.decode(msgspec.json.encode(body), type=wire.MemberPod))


def gathered(*bodies: Json, kept: Membership | None = None) -> GangSnapshot:
    pods = [read_member(body) for body in bodies]
    found = present(startgroup.gather(RING, pods, kept, None))
    return GangSnapshot(workload=found.workload, jobs=(found.job,), pods=found.pods, membership=kept)


def workload(*bodies: Json) -> WorkloadSeen:
    return gathered(*bodies).workload


# --- One pod ---------------------------------------------------------------------------------------------------------


def test_a_pod_belongs_to_the_group_of_its_label_and_its_owner() -> None:
    seen = read_member(member("a", RUNS))
    assert (seen.source, seen.gang, seen.workload_uid, seen.job_uid) == ("startgroup", RING.name, OWNER, OWNER)
    assert seen.token == "token-of-a"
    assert seen.started


def test_pods_of_one_template_are_read_alike_and_those_of_another_for_themselves() -> None:
    def devices(requests: Json, limits: Json, *, many: int = 1) -> Any:
        body = member("a")
        body["spec"]["containers"] = [{"name": "main", "resources": {"requests": requests, "limits": limits}}] * many
        seen = present(read_member(body).member)
        return seen.devices

    gpu = {"nvidia.com/gpu": "8"}
    assert devices(gpu, {}) == devices({}, gpu) == devices(gpu, {}) == (("nvidia.com/gpu", 8),)
    assert devices(gpu, {}, many=2) == (("nvidia.com/gpu", 16),)
    assert devices({"nvidia.com/gpu": "4"}, gpu) == (("nvidia.com/gpu", 4),)
    assert devices({"x" * 300_000: "1"}, gpu) == (), "of more text than is read no device is counted"


NO_MEMBERS: dict[str, Json] = {
    "without an owner": member("a", ownerReferences=[]),
    "of an owner that is no controller": member("a", ownerReferences=[STATEFUL_SET | {"controller": False}]),
    "a static pod's mirror": member("a", ownerReferences=[STATEFUL_SET | {"kind": "Node"}]),
    "of a name that is no DNS label": member("a", labels={"jobset-gate.dev/start-group": "Ring.1"}),
    "of an empty name": member("a", labels={"jobset-gate.dev/start-group": ""}),
    "of a kind that is a command": member("a", ownerReferences=[STATEFUL_SET | {"kind": "Set; reboot"}]),
    "of a name that is a command": member("a", ownerReferences=[STATEFUL_SET | {"name": "$(reboot)"}]),
}


@pytest.mark.parametrize("name", NO_MEMBERS)
def test_what_the_webhook_refuses_is_in_no_gang(name: str) -> None:
    assert decoded(NO_MEMBERS[name]) is None


@pytest.mark.parametrize(
    ("verdict", "attempt"),
    [
        ("release a 0 3 AllPodsStarted\n", 3),
        ("release b 0 3 AllPodsStarted\n", None),
        (f"release {OWNER} 3 0 AllPodsStarted\n", None),
        ("release a 1 3 AllPodsStarted\n", None),
        ("no verdict", None),
    ],
    ids=["its own", "another pod's", "the gang's, by hand", "of an attempt that no barrier has", "malformed"],
)
def test_a_verdict_counts_if_it_is_addressed_to_the_pod_that_carries_it(verdict: str, attempt: int | None) -> None:
    seen = read_member(member("a", RUNS, notes={"jobset-gate.dev/verdict": verdict}))
    found = verdict_codec.parse(seen.verdict)
    assert (None if found is None else found.generation.attempt) == attempt
    assert found is None or (found.generation.uid, found.generation.epoch) == (OWNER, 0)


@pytest.mark.parametrize("size", ["", "0", "x", "10001", "-1"])
def test_a_size_that_the_webhook_refuses_is_none(size: str) -> None:
    assert workload(member("a", size=size)).targets[0].expected == 0


# --- All of them -----------------------------------------------------------------------------------------------------


FIVE, SIX, ANY = ({CONFIG: config} for config in ('{"timeoutAfterSeconds": 5}', '{"timeoutAfterSeconds": 6}', "{}"))
RELEASE, BYPASS = {"jobset-gate.dev/on-timeout": "Release"}, {"jobset-gate.dev/bypass": "true"}
LEAVING = "2026-08-01T10:00:40Z"
DIFFERENCES: dict[str, tuple[Json, Json, tuple[int, int | None, bool, bool], tuple[str, ...]]] = {
    "none": ({}, {}, (2, None, False, False), ()),
    "the larger size": ({"size": "3"}, {"size": "2"}, (3, None, False, False), ("b",)),
    "the longer timeout": ({"notes": FIVE}, {"notes": SIX}, (2, 6, False, False), ("a",)),
    "no timeout before any": ({"notes": FIVE}, {"notes": ANY}, (2, None, False, False), ("a",)),
    "Fail before Release": ({"notes": RELEASE}, {}, (2, None, False, False), ("a",)),
    "a bypass of all": ({"notes": BYPASS}, {"notes": BYPASS}, (2, None, True, False), ()),
    "a bypass of one": ({"notes": BYPASS}, {}, (2, None, False, False), ("a",)),
    "a pod that is being deleted": ({"size": "3", "deletionTimestamp": LEAVING}, {}, (2, None, False, False), ()),
    "in many ways": ({"size": "3", "notes": FIVE}, {}, (3, None, False, False), ("a", "b")),
}
"""What two pods say, and which values count; who differs from them."""


@pytest.mark.parametrize("name", DIFFERENCES)
def test_where_pods_differ_the_most_patient_value_counts(name: str) -> None:
    one, other, counts, differing = DIFFERENCES[name]
    found = workload(member("a", **one), member("b", **other))
    said = (found.targets[0].expected, found.config.timeout, found.bypass, found.releases_on_timeout)
    assert (said, found.differing) == (counts, differing)


def test_a_size_that_was_raised_while_pods_wait_releases_nobody_early() -> None:
    bodies = [member("a", RUNS, size="2"), member("b", RUNS, size="2"), member("c", RUNS, size="4")]
    assert isinstance(decide(gathered(*bodies), NOW), Wait)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_without_a_live_pod_the_gang_is_over(phase: str) -> None:
    assert workload(member("a", phase=phase)).finished
    assert not workload(member("a", phase=phase), member("b")).finished
    assert startgroup.gather(RING, [], Membership(attempt=1), None) is None, "without any there is none"


def test_a_live_pod_without_barrier_is_named_and_one_that_is_over_is_not() -> None:
    assert workload(member("a"), member("c", init=()), member("b", init=("other",))).bare_pod == "b"
    assert workload(member("a"), member("b", phase="Failed", init=())).bare_pod == ""


def test_succeeded_leftovers_of_an_earlier_attempt_complete_no_later_one() -> None:
    leftovers = [member(it, PASSED, phase="Succeeded", notes=addressed(it, 0)) for it in "abc"]
    kept = Membership(attempt=0, members=frozenset("abc"))
    seen = gathered(*leftovers, member("d", RUNS, size="3"), kept=kept)
    assert (seen.workload.attempt, [it.uid for it in count.gang_pods(seen)]) == (1, ["d"])
    decision = decided(Wait, seen, NOW)
    assert decision.started == 1


def test_succeeded_pods_of_the_attempt_that_released_them_count_for_it() -> None:
    kept = Membership(attempt=1, members=frozenset({"a", "b"}))
    seen = gathered(member("a", PASSED, phase="Succeeded"), member("b", RUNS), kept=kept)
    assert (seen.workload.attempt, len(seen.pods)) == (1, 2)


@pytest.mark.parametrize(("api_version", "counts"), [("batch/v1", True), ("batch.volcano.sh/v1alpha1", False)])
def test_the_success_of_a_batch_job_alone_is_final_in_every_attempt(api_version: str, counts: bool) -> None:
    by_job = [owner("Job", "ring", OWNER) | {"apiVersion": api_version}]
    done = member("a", PASSED, phase="Succeeded", ownerReferences=by_job, notes=addressed("a", 0))
    kept = Membership(attempt=0, members=frozenset({"a", "b"}))
    waiting = gathered(done, member("c", ownerReferences=by_job), kept=kept)
    assert (waiting.workload.attempt, decided(Wait, waiting, NOW).started) == (1, int(counts))
    complete = gathered(done, member("c", RUNS, ownerReferences=by_job), kept=kept)
    assert isinstance(decide(complete, NOW), Decide) is counts


def test_members_are_rewritten_when_an_attempt_begins_and_kept_otherwise() -> None:
    kept = Membership(attempt=0, members=frozenset({"a"}))
    seen = gathered(member("b", RUNS), member("c", phase="Failed"), kept=kept)
    assert startgroup.membership_to_write(seen, begins=False) is kept
    assert startgroup.membership_to_write(seen, begins=True) == Membership(attempt=1, members=frozenset({"b"}))


# --- The ConfigMap ---------------------------------------------------------------------------------------------------


def config_map(**changes: Any) -> Json:
    meta = {
        "name": f"{RING.name}.start.group-scheduling",
        "namespace": RING.namespace,
        "uid": "cm",
        "labels": {"jobset-gate.dev/gate": "true", "jobset-gate.dev/start-group": "ring"},
        "annotations": {
            "jobset-gate.dev/jobset-uid": OWNER,
            "jobset-gate.dev/group-started": "False",
            "jobset-gate.dev/gang-state": "WaitingForPods: 1/2 pods started; missing: 1 pod",
        },
        "ownerReferences": [STATEFUL_SET | {"controller": False}],
    }
    return {"metadata": meta | changes.pop("meta", {}), "data": {"attempt": "3", "members": "a\nb"} | changes}


def test_the_config_map_holds_attempt_members_and_condition() -> None:
    seen = present(read_config_map(config_map()))
    assert (seen.source, seen.gang, seen.workload_uid, seen.canonical) == ("startgroup", RING.name, OWNER, True)
    assert seen.membership == Membership(attempt=3, members=frozenset({"a", "b"}))
    assert seen.condition is not None
    said = (seen.condition.status, seen.condition.reason, seen.condition.message)
    assert said == ("False", "WaitingForPods", "1/2 pods started; missing: 1 pod")


@pytest.mark.parametrize(
    "edited",
    [
        config_map(meta={"labels": {"jobset-gate.dev/gate": "true"}}),
        config_map(meta={"annotations": {"jobset-gate.dev/jobset-uid": "other"}}),
        config_map(meta={"ownerReferences": []}),
        config_map(more="than we write"),
        config_map(members="b a"),
    ],
    ids=["label", "annotation", "owner", "a key", "another order"],
)
def test_what_a_user_changed_is_seen_and_it_stays_this_gangs(edited: Json) -> None:
    seen = present(read_config_map(edited))
    assert (seen.workload_uid, seen.canonical) == (OWNER, False)
