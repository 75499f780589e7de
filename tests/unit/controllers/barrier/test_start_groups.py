"""A start group, pass by pass: its attempt, its ConfigMap, and what is written where (K5 to K8)."""

from __future__ import annotations

import asyncio

import pytest

from controllers.barrier.creation_problems import FIRST_READ_AFTER
from jobset_gate import names
from jobset_gate.barrier.integrity import is_config_map_canonical
from jobset_gate.barrier.model import GangKey, VerdictKind
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, STATEFUL_SETS
from jobset_gate.runtime.workqueue import Requeue
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.memory_api import Api, Json
from tests.fakes.memory_client import MemoryClient
from tests.fakes.start_group_controller import (
    NAME,
    OWNER,
    PASSED,
    RUNS,
    SPACE,
    STATEFUL_SET,
    StartGroupController,
    addressed,
    member,
)
from tests.fakes.wire_objects import BARRIER, TEN_O_CLOCK, owner, status

LAUNCHER = owner("Job", "launcher", "job-uid")
ONE_BY_ONE = "the StatefulSet ring creates its pods one by one"
TIMEOUT = {names.CONFIG: '{"timeoutAfterSeconds": 60}'}


@pytest.fixture
async def ring(api: Api, memory: MemoryClient) -> StartGroupController:
    """Of a moment after the first barriers have started."""
    return StartGroupController(api, memory, VirtualClock(asyncio.get_running_loop(), TEN_O_CLOCK + 32))


async def released(ring: StartGroupController) -> StartGroupController:
    """Attempt 0 has started: the pods a and b."""
    await ring.reconcile(member("a", RUNS), member("b", RUNS))
    ring.watch()
    return ring


# --- The first attempt -----------------------------------------------------------------------------------------------


async def test_the_last_pod_opens_the_gate(ring: StartGroupController) -> None:
    await ring.reconcile(member("ring-0", RUNS), member("ring-1"))
    assert (ring.verdict, ring.attempt, ring.members, ring.state[0]) == (None, 0, {"ring-0", "ring-1"}, "False")
    assert ring.state[1].startswith("WaitingForPods: 1/2 pods started; missing: 1 pod: Starting")
    assert "(ring-1)" in ring.state[1]
    await ring.reconcile(member("ring-1", RUNS))
    assert ring.decided.cause == names.REASON_STARTED
    assert ring.state == ("True", f"AllPodsStarted: all 2 pods started (uid {OWNER}, attempt 0, epoch 0)")
    (write,) = (call.body for call in ring.memory.calls if call.verb == "patch" and call.kind == CONFIGMAPS)
    assert (write["immutable"], "members" in write["data"], ring.members) == (None, False, {"ring-0", "ring-1"})


async def test_the_config_map_is_found_by_the_groups_name_and_goes_with_the_owner(ring: StartGroupController) -> None:
    await ring.reconcile(member("ring-0"))
    meta = ring.stored["metadata"]
    assert meta["labels"] == {
        "jobset-gate.dev/gate": "true",
        "jobset-gate.dev/start-group": "ring",
        "app.kubernetes.io/managed-by": "jobset-gate",
    }
    assert meta["ownerReferences"] == [STATEFUL_SET | {"controller": False}]
    assert ring.stored["data"] == {"attempt": "0"}, "no clock runs, so nothing binds a pod to the attempt"


async def test_the_condition_is_written_with_the_verdict_and_not_once_more(ring: StartGroupController) -> None:
    ring.show(member("a", RUNS), member("b", RUNS))
    await ring.reconciler.reconcile(ring.key)
    assert (ring.decided.kind, ring.state[0]) == (VerdictKind.RELEASE, "True")
    version = ring.stored["metadata"]["resourceVersion"]
    await ring.status.reconcile(ring.key)
    assert ring.stored["metadata"]["resourceVersion"] == version
    assert [it["reason"] for it in ring.api.all(EVENTS)] == ["AllPodsStarted"]


@pytest.mark.parametrize(
    "other",
    [{"notes": TIMEOUT}, {}, {"notes": TIMEOUT, "init": ()}],
    ids=["started", "without a timeout", "without barrier"],
)
async def test_pods_of_another_owner_change_nothing_about_a_timeout(ring: StartGroupController, other: Json) -> None:
    """The label selects the pods of both owners, and a timeout is decided after they are listed."""
    ring.show(member("a", RUNS, notes=TIMEOUT), member("b", notes=TIMEOUT))
    await ring.reconcile(*(member(it, RUNS, ownerReferences=[LAUNCHER], **other) for it in ("c", "d")))
    await asyncio.sleep(60)
    await ring.reconcile()
    assert (ring.decided.kind, ring.members) == (VerdictKind.TIMEOUT, {"a", "b"})
    assert ring.decided.message.startswith("timed out after 60s: 1/2 pods started")


async def test_without_any_pod_in_the_api_no_config_map_is_made(ring: StartGroupController) -> None:
    """Its owner may be gone: the garbage collector would delete each."""
    ring.show(member("a", RUNS))
    ring.remove("a")
    with pytest.raises(Requeue, match="is gone"):
        await ring.reconcile()
    assert ring.api.all(CONFIGMAPS) == []


async def test_a_group_whose_pods_have_all_ended_is_left_alone(ring: StartGroupController) -> None:
    await released(ring)
    ring.show(*(member(it, PASSED, phase="Succeeded") for it in ("a", "b")))
    before = ring.stored
    await ring.reconcile()
    assert ring.stored == before


# --- The next attempt ------------------------------------------------------------------------------------------------


async def test_pods_that_were_all_replaced_wait_for_each_other_though_no_controller_saw_it(
    ring: StartGroupController,
) -> None:
    await released(ring)
    ring.remove("a", "b")
    ring.put(member("c", RUNS))
    successor = ring.successor()
    await successor.reconcile()
    assert (successor.verdict, successor.attempt, successor.members) == (None, 1, {"c"})
    assert successor.state[0] == "False"
    await successor.reconcile(member("d", RUNS))
    assert (successor.decided.generation.attempt, successor.members) == (1, {"c", "d"})


async def test_the_whole_timeout_begins_again_with_the_next_attempt(ring: StartGroupController) -> None:
    await ring.reconcile(member("a", RUNS, notes=TIMEOUT), member("b", notes=TIMEOUT))
    await asyncio.sleep(50)
    ring.remove("a", "b")
    later = status(BARRIER, running="2026-08-01T10:01:20Z")
    await ring.reconcile(member("c", later, notes=TIMEOUT), member("d", notes=TIMEOUT))
    await asyncio.sleep(50)
    await ring.reconcile()
    assert (ring.attempt, ring.verdict) == (1, None)
    await asyncio.sleep(12)
    await ring.reconcile()
    assert ring.decided.kind is VerdictKind.TIMEOUT


async def test_one_pod_that_is_replaced_keeps_the_attempt_and_is_released(ring: StartGroupController) -> None:
    await released(ring)
    ring.remove("b")
    await ring.reconcile(member("a", PASSED), member("e", RUNS))
    assert (ring.attempt, ring.verdict is not None) == (0, True)
    assert [pod.attempt for pod in ring.seen.pods if pod.uid == "e"] == [0]


async def test_a_controller_that_has_not_seen_the_present_pods_ends_no_attempt(ring: StartGroupController) -> None:
    """Another replica wrote attempt 1 of pods that this one's watch has not shown: they are read before (K5)."""
    await released(ring)
    ring.remove("a", "b")
    ring.put(member("c", RUNS), member("d", RUNS))
    other = ring.successor()
    await other.reconcile()
    assert (other.attempt, other.verdict is not None) == (1, True)
    ring.watch(CONFIGMAPS)
    before = ring.stored["data"]
    await ring.reconcile()
    assert ring.stored["data"] == before


async def test_a_deleted_config_map_comes_back_with_its_attempt_and_its_verdict(ring: StartGroupController) -> None:
    await released(ring)
    ring.show(member("a", PASSED, notes=addressed("a", 4)), member("b", RUNS))
    ring.api.remove(CONFIGMAPS, NAME, namespace=SPACE)
    successor = ring.successor()
    await successor.reconcile()
    assert (successor.attempt, successor.members) == (4, {"a", "b"})
    assert successor.verdict is not None


# --- Without a barrier -----------------------------------------------------------------------------------------------


def events(api: Api) -> list[tuple[str, str, str]]:
    """(kind of the object, reason, message)."""
    return [(it["involvedObject"]["kind"], it["reason"], it["message"]) for it in api.all(EVENTS)]


async def test_a_pod_without_barrier_opens_the_gate_and_is_named(ring: StartGroupController) -> None:
    await ring.reconcile(member("a", RUNS, size="3"), member("b", size="3", init=()))
    assert (ring.decided.kind, ring.decided.cause) == (VerdictKind.RELEASE, names.REASON_GATE_MISSING)
    ((kind, reason, message),) = events(ring.api)
    assert (kind, reason) == ("StatefulSet", "GateMissing")
    assert message.startswith("startgroup ring: gate opened with 1/3 pods started: the pod b carries no ")


async def test_a_pod_without_barrier_that_is_gone_opens_nothing(ring: StartGroupController) -> None:
    """The group's first passes read the pods anyway, before they create the ConfigMap."""
    await ring.reconcile(member("a", RUNS, size="3"))
    ring.show(member("b", size="3", init=()))
    ring.remove("b")
    assert (ring.seen.workload.bare_pod, is_config_map_canonical(ring.seen)) == ("b", True)
    await ring.reconcile()
    assert (ring.verdict, events(ring.api)) == (None, [])


# --- Warnings --------------------------------------------------------------------------------------------------------


async def test_pods_that_differ_are_named_once_and_the_most_patient_values_count(ring: StartGroupController) -> None:
    await ring.reconcile(member("a", RUNS, size="2"), member("b", RUNS, size="3"))
    await ring.reconcile()
    assert ring.verdict is None
    assert "2/3 pods started; not all its pods say the same" in ring.state[1]
    assert "deleted: a; missing: 1 pod: NotCreated: the StatefulSet ring has not created it yet;" in ring.state[1]
    ((kind, reason, message),) = events(ring.api)
    assert (kind, reason) == ("StatefulSet", "PodsDiffer")
    assert message.endswith("until these are deleted: a")


async def test_one_name_that_waits_under_two_owners_is_reported_on_both(ring: StartGroupController) -> None:
    await ring.reconcile(member("a", RUNS), member("b", ownerReferences=[LAUNCHER]))
    await ring.reconcile(key=GangKey(SPACE, "ring.job-uid", "startgroup"))
    assert {event[:2] for event in events(ring.api)} == {("StatefulSet", "TwoOwners"), ("Job", "TwoOwners")}
    sentence = "a start group has one owner: leave the launcher out, and set launcherCreationPolicy WaitForWorkersReady"
    assert all(message.endswith(sentence) for _, _, message in events(ring.api))


@pytest.mark.parametrize(
    ("replicas", "policy", "sentence"),
    [
        (8, "OrderedReady", f"{ONE_BY_ONE}, 1 of 8 can be there: use podManagementPolicy Parallel"),
        (6, "Parallel", "the StatefulSet ring has 6 replicas, 6 of 8 can be there"),
        (8, "Parallel", ""),
        (0, "", ""),
    ],
    ids=["one by one", "too few", "enough", "not there"],
)
async def test_an_owner_that_can_never_have_enough_pods_is_the_reason(
    ring: StartGroupController, replicas: int, policy: str, sentence: str
) -> None:
    if policy:
        meta, spec = {"name": "ring", "namespace": SPACE}, {"replicas": replicas, "podManagementPolicy": policy}
        ring.api.put(STATEFUL_SETS, {"metadata": meta | {"uid": OWNER}, "spec": spec})
    await ring.reconcile(member("a", RUNS, size="8"))
    assert ring.state[1].startswith("WaitingForPods: ")
    await asyncio.sleep(FIRST_READ_AFTER)
    await ring.reconcile()
    await ring.reconcile()
    assert len([call for call in ring.memory.calls if call.kind == STATEFUL_SETS]) == 1
    said = f"CannotGather: 1/8 pods started; {sentence}; missing: " if sentence else "WaitingForPods: "
    assert ring.state[1].startswith(said)
    reported = [(kind, reason) for kind, reason, _ in events(ring.api)]
    assert reported == ([("StatefulSet", "CannotGather")] if sentence else [])


async def test_what_a_quota_refuses_of_a_stateful_set_is_reported(ring: StartGroupController) -> None:
    about = {"kind": "StatefulSet", "name": "ring"}
    refused = {"involvedObject": about, "reason": "FailedCreate", "message": "exceeded quota: gpus"}
    ring.api.create(EVENTS, {"metadata": {"name": "refused"}} | refused, SPACE)
    ring.show(member("a", RUNS))
    for _ in range(3):
        await ring.reconcile()
        await asyncio.sleep(15)
    assert "1 pod: QuotaDenied: exceeded quota: gpus" in ring.state[1]
