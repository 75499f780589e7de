"""A group of a LeaderWorkerSet, pass by pass: its members, its ConfigMap, and what is written where (K5 to K7)."""

from __future__ import annotations

import asyncio

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.resources import CONFIGMAPS, PODS, STATEFUL_SETS
from jobset_gate.runtime.workqueue import Requeue
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.lws_controller import (
    GROUP,
    LWS_UID,
    LwsController,
    leader_pod,
    leader_worker_set,
    worker_pod,
    worker_set,
)
from tests.fakes.memory_api import Api
from tests.fakes.memory_client import MemoryClient
from tests.fakes.start_group_controller import PASSED, RUNS, SPACE, addressed
from tests.fakes.wire_objects import TEN_O_CLOCK

NAME = "vllm-2.lws.group-scheduling"


@pytest.fixture
async def vllm(api: Api, memory: MemoryClient) -> LwsController:
    """Of a moment after the first barriers have started."""
    return LwsController(api, memory, VirtualClock(asyncio.get_running_loop(), TEN_O_CLOCK + 32))


# --- One leader ------------------------------------------------------------------------------------------------------


async def test_the_config_map_goes_with_the_leader_pod_and_looks_like_a_jobsets(vllm: LwsController) -> None:
    await vllm.reconcile(leader_pod("A"))
    stored = vllm.api.known(CONFIGMAPS, NAME, SPACE)
    meta = stored["metadata"]
    assert (meta["labels"], meta["annotations"]) == (
        {"jobset-gate.dev/gate": "true", "app.kubernetes.io/managed-by": "jobset-gate"},
        {"jobset-gate.dev/jobset-uid": "A"},
    )
    assert meta["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "vllm-2", "uid": "A", "controller": False}
    ]
    assert stored["data"] == {}


async def test_a_worker_counts_once_its_stateful_set_is_known(vllm: LwsController) -> None:
    vllm.put(worker_set(), leader_pod("A", RUNS), worker_pod(1, "A", RUNS))
    vllm.watch(PODS)
    await vllm.reconcile()
    assert not vllm.cache.is_pod_waiting(GROUP, "A-1")
    vllm.asked.clear()
    vllm.watch(STATEFUL_SETS)
    assert vllm.asked == [GROUP]
    assert vllm.cache.is_pod_waiting(GROUP, "A-1")
    await vllm.reconcile()
    found = vllm.decided_on("A")
    assert (found.kind, found.cause, found.generation.uid) == (VerdictKind.RELEASE, "AllPodsStarted", "A")


async def test_a_worker_that_is_replaced_passes_at_once(vllm: LwsController) -> None:
    """Under restartPolicy None."""
    vllm.start_group("A", RUNS)
    await vllm.reconcile()
    vllm.watch()
    written = vllm.kept["A"]
    await vllm.reconcile(leader_pod("A", PASSED), worker_pod(1, "A", RUNS, uid="new"))
    assert [it.uid for it in vllm.seen.pods if it.workload_uid == "A"] == ["A", "new"]
    assert vllm.kept["A"] == written


async def test_a_live_pod_without_barrier_opens_the_gate_at_once(vllm: LwsController) -> None:
    """The webhook was away for half the group, under `Ignore` (K6)."""
    vllm.show(leader_worker_set(), worker_set(), leader_pod("A", RUNS, size=3), worker_pod(1, size=3, barrier=()))
    await vllm.reconcile()
    found = vllm.decided_on("A")
    assert (found.kind, found.cause) == (VerdictKind.RELEASE, names.REASON_GATE_MISSING)
    ((kind, uid, reason, message),) = vllm.events
    assert (kind, uid, reason) == ("LeaderWorkerSet", LWS_UID, "GateMissing")
    assert message.startswith("lws/vllm/2: gate opened with 1/3 pods started: the pod vllm-2-1 carries no ")


async def test_bypass_on_the_leader_worker_set_opens_groups_that_are_there_and_that_come(vllm: LwsController) -> None:
    vllm.show(leader_worker_set(), leader_pod("A", RUNS))
    vllm.asked.clear()
    vllm.show(leader_worker_set(notes={names.BYPASS: "true"}))
    assert vllm.asked == [GROUP]
    await vllm.reconcile()
    assert vllm.decided_on("A").cause == names.REASON_BYPASSED
    vllm.show(leader_pod("F", RUNS, group=5))
    workload = vllm.cache.get_workload(GROUP._replace(name="vllm-5"))
    assert workload is not None
    assert workload.bypass


# --- Another leader --------------------------------------------------------------------------------------------------


async def test_without_leader_a_group_is_idle(vllm: LwsController) -> None:
    vllm.start_group("A", RUNS)
    vllm.remove("vllm-2")
    vllm.watch()
    await vllm.reconcile()
    assert (list(vllm.cache.keys()), vllm.kept) == ([], {})
    assert not vllm.cache.is_pod_waiting(GROUP, "A-1")


async def test_of_an_empty_group_nothing_is_kept(vllm: LwsController) -> None:
    vllm.start_group("A", RUNS)
    vllm.remove("vllm-2", "vllm-2-1")
    vllm.watch()
    assert len(vllm.cache) == 1, "the StatefulSet is there"
    vllm.api.remove(STATEFUL_SETS, "vllm-2", namespace=SPACE)
    vllm.watch()
    assert (len(vllm.cache), vllm.cache.groups_of(SPACE, "vllm")) == (0, [])


async def test_groups_that_wait_in_one_leader_worker_set_are_no_two_owners(vllm: LwsController) -> None:
    await vllm.reconcile(leader_worker_set(2), leader_pod("A", RUNS), leader_pod("F", RUNS, group=1))
    assert vllm.events == []


async def test_workers_of_a_leader_deleted_in_the_background_count_for_no_other(vllm: LwsController) -> None:
    """The next leader exists before they go, and before the StatefulSet of its own."""
    vllm.show(worker_set("A"), leader_pod("A", RUNS), worker_pod(1, "A", RUNS))
    vllm.remove("vllm-2")
    await vllm.reconcile(leader_pod("B", RUNS))
    assert (vllm.verdict_on("B"), vllm.cache.is_pod_waiting(GROUP, "A-1")) == (None, False)
    assert [it.uid for it in vllm.seen.pods] == ["B"]
    vllm.remove("vllm-2-1")
    await vllm.reconcile(worker_set("B"), worker_pod(1, "B", RUNS))
    assert vllm.verdict_on("B") is not None


async def test_pods_that_were_all_replaced_while_nobody_was_there_wait_for_each_other(vllm: LwsController) -> None:
    """The verdict was written, and the controller killed."""
    vllm.start_group("A", RUNS)
    await vllm.reconcile()
    vllm.remove("vllm-2", "vllm-2-1")
    vllm.put(worker_set("B"), leader_pod("B", RUNS), worker_pod(1, "B", notes=addressed("A-1")))
    later = vllm.successor()
    with pytest.raises(Requeue, match="of an earlier"):
        await later.reconcile()
    await later.reconcile()
    assert later.verdict_on("B") is None
    await later.reconcile(worker_pod(1, "B", RUNS))
    assert later.verdict_on("B") is not None


async def test_a_controller_that_has_not_seen_the_next_leader_deletes_nothing_of_it(vllm: LwsController) -> None:
    vllm.start_group("A", RUNS)
    vllm.remove("vllm-2", "vllm-2-1")
    vllm.put(worker_set("B"), leader_pod("B", RUNS), worker_pod(1, "B", RUNS))
    other = vllm.successor()
    await other.reconcile()
    vllm.watch(CONFIGMAPS)
    with pytest.raises(Requeue):
        await vllm.reconcile()
    assert set(vllm.kept) == {"B"}


async def test_each_start_of_each_leader_is_an_event_on_the_leader_worker_set(vllm: LwsController) -> None:
    vllm.show(leader_worker_set(3))
    for leader, group in (("A", 2), ("F", 1)):
        vllm.start_group(leader, RUNS, group=group)
        await vllm.reconcile(key=GROUP._replace(name=f"vllm-{group}"))
    vllm.remove("vllm-2", "vllm-2-1")
    vllm.start_group("B", RUNS)
    with pytest.raises(Requeue, match="of an earlier"):
        await vllm.reconcile()
    await vllm.reconcile()
    found = [(uid, message.partition(": ")[0]) for _, uid, _, message in vllm.events]
    assert found == [(LWS_UID, "lws/vllm/2"), (LWS_UID, "lws/vllm/1"), (LWS_UID, "lws/vllm/2")]
