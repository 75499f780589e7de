"""A group opened and taken back by hand, on the real plane: what stands between the two decisions of the controller."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from controllers.podgroups.evictor import EvictionResult, Evictor
from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import JOBS, PODS
from jobset_gate.podgroups import decode
from jobset_gate.podgroups.model import Flavor, Format, PodGroupKey, group_label
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import bound, gated
from tests.fakes.podgroups.objects import record
from tests.fakes.podgroups.snapshots import group_snapshot
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

    async def resume(self) -> None:
        """What follows once the decision is closed."""
        evictor, label = Evictor(self.stage.client), group_label(self.key)
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
