"""Groups that are taken back under the real Job controller and scheduler: no Job fails, none counts a failure (G4)."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from controllers.podgroups.evictor import EvictionResult, Evictor
from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import JOBS, PODS
from jobset_gate.podgroups import decode
from jobset_gate.podgroups.model import Flavor, Format, PodGroupKey, group_label
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate_demo.fake.kubelet import PodFault, PodMatch
from tests.fakes.crash_point import CrashPoint, doomed_client
from tests.fakes.object_view import ObjectView, conditions, is_true
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import bound, gated
from tests.fakes.podgroups.objects import record
from tests.fakes.podgroups.snapshots import group_snapshot
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment

Json = dict[str, Any]
GANG = "ring"
KEEP_FINALIZER = "test.jobset-gate.dev/stays"
"""A finalizer: a pod that has ended stays a while, as one whose kubelet has much to clear away."""
OPENED_AT = 1_700_000_000.0


@dataclass
class ManualEviction:
    """One generation of the gang of a stage. Its pods are those that the webhook holds for it."""

    stage: GroupEnvironment
    generation: int = 1
    minimum: int = 4

    @property
    def key(self) -> PodGroupKey:
        return PodGroupKey(flavor=Flavor.ALIBABA, namespace=self.stage.namespace, name=GANG)

    @property
    def record(self) -> AdmissionRecord:
        return record((self.key, self.generation), stage=AdmissionState.ROLLING_BACK, minimum=self.minimum)

    async def open(self, pods: Iterable[Json]) -> None:

        async def one(pod: Json) -> None:
            meta = pod["metadata"]
            body = {
                "metadata": {
                    "uid": meta["uid"],
                    "annotations": {names.POD_GROUP_OPENED: decode.format_opened(self.generation, OPENED_AT)},
                },
                "spec": {"schedulingGates": [{"$patch": "delete", "name": names.POD_GROUP_GATE}]},
            }
            await self.stage.client.patch(PODS, meta["name"], meta["namespace"], body=body, patch=PatchType.STRATEGIC)

        await asyncio.gather(*map(one, pods))

    async def seen(self) -> GroupSnapshot:
        """As the index would have it, but never late."""
        of_ours = f"{names.POD_GROUP_LABEL}={group_label(self.key)}"
        listed = await self.stage.client.list(PODS, self.stage.namespace, label_selector=of_ours)
        return group_snapshot(*listed["items"], of=self.key, record=self.record)

    async def roll_back(self, client: Client | None = None) -> EvictionResult:
        """All steps: another one whenever the pods have changed, as the controller does it."""
        rollbacks = Evictor(client or self.stage.client)
        while True:
            answer = await rollbacks.advance_eviction([await self.seen()], self.record)
            if isinstance(answer, EvictionResult):
                return answer
            await self._changed(answer)

    async def resume(self, client: Client | None = None) -> None:
        """What follows once the decision is closed."""
        evictor, label = Evictor(client or self.stage.client), group_label(self.key)
        await evictor.resume_owners(label, self.generation, self.stage.namespace)

    async def _changed(self, at_most: float) -> None:
        before = [one["metadata"]["resourceVersion"] for one in self.stage.pods.all()]
        try:
            await self.stage.until(
                lambda pods: [one["metadata"]["resourceVersion"] for one in pods] != before, max(at_most, 0.01)
            )
        except TimeoutError:
            return


def job(name: str, pods: int, rules: Sequence[Json]) -> Json:
    policy = {"podFailurePolicy": {"rules": rules}} if rules else {}
    return manifests.job(name, GANG, pods, Format.ALIBABA, pods, **policy)


def fails(operator: str, *values: int) -> Json:
    return {"action": "FailJob", "onExitCodes": {"operator": operator, "values": values}}


DISRUPTED = {"action": "Ignore", "onPodConditions": [{"type": names.DISRUPTION_TARGET, "status": "True"}]}
POLICIES = {
    "no policy": [],
    "fails on any code": [fails("NotIn", 0)],
    "fails on 143": [fails("In", 137, 143)],
    "ignores disruptions first": [DISRUPTED, fails("NotIn", 0)],
}


# --- What becomes of them --------------------------------------------------------------------------------------------


async def add_finalizers(stage: GroupEnvironment) -> None:
    """From now on the pods that have a node stay when they have ended, until remove_finalizers()."""
    body = {"metadata": {"finalizers": [KEEP_FINALIZER]}}
    for pod in filter(bound, (await stage.client.list(PODS, stage.namespace))["items"]):
        await stage.client.patch(PODS, pod["metadata"]["name"], stage.namespace, body=body, patch=PatchType.STRATEGIC)


async def remove_finalizers(stage: GroupEnvironment) -> None:
    body = {"metadata": {"$deleteFromPrimitiveList/finalizers": [KEEP_FINALIZER]}}
    for pod in (await stage.client.list(PODS, stage.namespace))["items"]:
        if KEEP_FINALIZER in pod["metadata"].get("finalizers", ()):
            await stage.client.patch(
                PODS, pod["metadata"]["name"], stage.namespace, body=body, patch=PatchType.STRATEGIC
            )


def living(pods: Sequence[Json]) -> list[Json]:
    """Those that are there and neither end nor have ended."""
    over = ("Failed", "Succeeded")
    return [
        one
        for one in pods
        if "deletionTimestamp" not in one["metadata"] and one.get("status", {}).get("phase") not in over
    ]


def all_held(count: int, but: Iterable[str] = ()) -> Callable[[list[Json]], bool]:
    """So many live, all behind our gate, none of them one of those UIDs."""
    old = set(but)

    def holds(pods: list[Json]) -> bool:
        found = living(pods)
        return len(found) == count and all(gated(one) and one["metadata"]["uid"] not in old for one in found)

    return holds


def indexes(pods: Sequence[Json]) -> list[str]:
    return sorted(one["metadata"]["labels"][names.JOB_COMPLETION_INDEX] for one in living(pods))


def uids(pods: Sequence[Json]) -> list[str]:
    return [one["metadata"]["uid"] for one in pods]


def placed(running: int, bound_: int, all_: int) -> Callable[[list[Json]], bool]:
    """So many run, so many have a node, so many are there."""
    return lambda pods: (sum(map(manifests.runs, pods)), sum(map(bound, pods)), len(pods)) == (running, bound_, all_)


async def unharmed_owner(stage: GroupEnvironment, name: str) -> Json:
    """The Job, whose nothing was counted and nothing of ours is left."""
    found = await stage.client.get(JOBS, name, stage.namespace)
    status, meta = found["status"], found["metadata"]
    reported = {one["type"] for one in status.get("conditions", ()) if one["status"] == "True"}
    assert not reported & {"Failed", "FailureTarget"}, reported
    assert status.get("failed", 0) == 0
    assert not found["spec"].get("suspend")
    assert names.POD_GROUP_SUSPENDED not in meta.get("annotations", {}) | meta.get("labels", {})
    return found


# --- Tests ------------------------------------------------------------------------------------------------------------


async def halfway(stage: GroupEnvironment, rolling: ManualEviction, policy: str) -> list[str]:
    """A Job whose gang is open: one pod has no place, one is bound and has not begun, the others run. Their UIDs."""
    assert stage.kubelets is not None
    stage.kubelets.inject_fault(PodFault(PodMatch(name="work-1-*"), slow_start=3600))
    await stage.apply(job("work", 4, POLICIES[policy]))
    held = await stage.until(all_held(4))
    await rolling.open(one for one in held if not one["metadata"]["name"].startswith("work-3-"))
    await stage.until_bound(3)  # so that it is always the last one that has no place
    await rolling.open(one for one in held if one["metadata"]["name"].startswith("work-3-"))
    await stage.until(placed(2, 3, 4))
    await add_finalizers(stage)
    return uids(held)


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_job_that_any_failure_would_end_gets_all_its_pods_back(
    make_stage: MakeGroupEnvironment, policy: str
) -> None:
    async with make_stage(kubelets=True, nodes={"n": "3"}, controller=False) as stage:
        rolling = ManualEviction(stage)
        old = await halfway(stage, rolling, policy)
        rolled = await rolling.roll_back()
        assert rolled.blocked == ()
        assert not any(one["metadata"]["uid"] in old for one in living(stage.pods.all()))
        await rolling.resume()
        new = await stage.until(all_held(4, but=old))
        assert indexes(new) == ["0", "1", "2", "3"]
        await unharmed_owner(stage, "work")
        await remove_finalizers(stage)


def owner(kind: str, replicas: int) -> Json:
    """A controller whose pods are of the gang, all made at once."""
    at_once = {"podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}
    return manifests.owner(kind, manifests.job("web", GANG, replicas, Format.ALIBABA, replicas), **at_once)


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "ReplicationController", "Deployment"])
async def test_pods_of_other_controllers_are_disrupted_and_deleted_and_made_again(
    make_stage: MakeGroupEnvironment, kind: str
) -> None:
    """Bound or not. A StatefulSet's new pods have the old ones' names."""
    async with make_stage(kubelets=True, nodes={"n": "2"}, controller=False) as stage:
        rolling, reasons = ManualEviction(stage, minimum=3), dict[str, str]()

        def note(pod: Json) -> None:
            if is_true(pod, names.DISRUPTION_TARGET):
                reasons[pod["metadata"]["uid"]] = conditions(pod)[names.DISRUPTION_TARGET]["reason"]

        await stage.apply(owner(kind, 3))
        old = await stage.until(all_held(3))
        await rolling.open(old)
        await stage.until(placed(2, 2, 3))
        async with ObjectView(stage.client, PODS, stage.namespace, each=note):
            rolled = await rolling.roll_back()
            await rolling.resume()
            await stage.until(all_held(3, but=uids(old)))
        assert rolled.blocked == ()
        assert reasons == dict.fromkeys(uids(old), names.REASON_DISRUPTED)


async def test_bare_pods_are_never_deleted_and_all_others_are(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(kubelets=True, nodes={"n": "3"}, controller=False) as stage:
        rolling = ManualEviction(stage, minimum=4)
        bare = await stage.create(*(manifests.pod(name, GANG, Format.ALIBABA, 4) for name in ("one", "two")))
        await stage.apply(owner("ReplicaSet", 2))
        held = await stage.until(all_held(4))
        await rolling.open(held)
        await stage.until_bound(3)
        rolled = await rolling.roll_back()
        assert rolled.blocked == ("one", "two")
        assert rolled.why == "nobody would make them again, so they are left to you to delete: one, two"
        left = await stage.until(lambda pods: len(living(pods)) == 4 and set(uids(bare)) <= set(uids(living(pods))))
        assert {one["metadata"]["name"] for one in living(left) if not gated(one)} == {"one", "two"}
        # Their user takes them away, and there is nothing left to be taken back.
        await stage.delete_pod("one")
        await stage.delete_pod("two")
        assert (await rolling.roll_back()).blocked == ()


WRITES = {"no policy": 2, "fails on any code": 4}
"""Suspend and resume; or else each of two pods is released and deleted."""


async def run_until_crash(rolling: ManualEviction, fate: CrashPoint) -> None:
    """A controller that takes the group back and resumes its owners, until it is killed."""
    async with doomed_client(fate)(rolling.stage.plane.access) as client:

        async def work() -> None:
            await rolling.roll_back(client)
            await rolling.resume(client)

        working = asyncio.create_task(work())
        await fate.until_dead_or(working)
        working.cancel()
        (end,) = await asyncio.gather(working, return_exceptions=True)
        assert fate.dead.is_set() or end is None, end


async def open_one(stage: GroupEnvironment, rolling: ManualEviction, policy: str) -> list[str]:
    """A Job of two pods, whose one runs and one has no place. Their UIDs."""
    await stage.apply(job("work", 2, POLICIES[policy]))
    held = await stage.until(all_held(2))
    await rolling.open(held)
    await stage.until(placed(1, 1, 2))
    await add_finalizers(stage)
    return uids(held)


@pytest.mark.parametrize("lands", [True, False], ids=["write lands", "write lost"])
@pytest.mark.parametrize("policy", WRITES)
async def test_killed_at_any_write_a_successor_takes_the_group_back(
    make_stage: MakeGroupEnvironment, policy: str, lands: bool
) -> None:
    async with make_stage(kubelets=True, nodes={"n": "1"}, controller=False) as stage:
        for last in range(1, WRITES[policy] + 1):
            rolling, fate = ManualEviction(stage, minimum=2), CrashPoint(last_write=last, lands=lands)
            old = await open_one(stage, rolling, policy)
            await run_until_crash(rolling, fate)
            assert fate.dead.is_set(), f"there are only {len(fate.writes)} writes: {fate.writes}"
            # The successor begins where the record stands; closing it is the controller's.
            assert (await rolling.roll_back()).blocked == ()
            await rolling.resume()
            new = await stage.until(all_held(2, but=old))
            assert indexes(new) == ["0", "1"], f"killed at {fate.writes}"
            await unharmed_owner(stage, "work")
            await remove_finalizers(stage)
            await stage.client.delete(JOBS, "work", stage.namespace, propagation="Background")
            await stage.until(lambda pods: not pods)
