"""Evictions while other clients write: no other pods, and nothing twice (G4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from fractions import Fraction
from typing import Any

import pytest

from controllers.podgroups.evictor import (
    CONFLICT_RETRY_SECONDS,
    RECHECK_SECONDS,
    RESUME_INTERVAL,
    EvictionResult,
    Evictor,
)
from jobset_gate import names
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, NotFound, ServerError
from jobset_gate.kube.resources import JOBS, JOBSETS, PODS, Resource
from jobset_gate.kube.transport import ApiRequest
from jobset_gate.podgroups import decode
from jobset_gate.podgroups.model import Flavor, GangMode, PodGroupKey, group_label
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate_demo.fake import jobset_crd, manifests
from jobset_gate_demo.fake.apiserver import ApiServer
from tests.fakes.podgroups.snapshots import group_snapshot

Json = dict[str, Any]
NAMESPACE = "default"
KEY = PodGroupKey(flavor=Flavor.ALIBABA, namespace=NAMESPACE, name="ring")
HELD = group_label(KEY)
MARK = f"{HELD}.3"
MAIN = {"name": "main", "image": "main"}
FATAL = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}]}
RECORD = AdmissionRecord(
    generation=3,
    stage=AdmissionState.ROLLING_BACK,
    how=AdmissionMode.PROBE,
    at=0.0,
    gangs=((KEY, 3),),
    minimum=2,
    wait=Fraction(60),
    mode=GangMode.STRICT,
)


class RacingClient(Client):
    """Another client writes just before the first write of the evictor to that kind. `calls` is the log."""

    before: tuple[Resource, Callable[[], Awaitable[object]]] | None = None
    calls: list[str]
    refusals: int = 0
    """Writes that a webhook refuses from now on."""

    async def _send(self, call: ApiRequest, type: Any) -> Any:  # noqa: A002 - as in Client
        self.calls.append(f"{call.verb} {call.resource}")
        if self.refusals and call.method != "GET":
            self.refusals -= 1
            raise Conflict(409, "Conflict", "the Job is still being suspended")
        if self.before is not None and call.method != "GET" and call.resource == self.before[0].plural:
            meddle, self.before = self.before[1], None
            await meddle()
        return await super()._send(call, type)


class EvictorHarness:
    """An API server without any controller but the one that rolls back."""

    def __init__(self, client: Client, ours: RacingClient) -> None:
        self.client, self.ours = client, ours
        self.evictor = Evictor(ours)

    async def job(self, name: str = "work", **spec: Any) -> Json:
        template = {"spec": {"restartPolicy": "Never", "containers": [MAIN]}}
        return await self.client.create(
            JOBS, {"metadata": {"name": name}, "spec": {"template": template, **spec}}, NAMESPACE
        )

    async def suspended(self, name: str = "work", mark: str = MARK) -> None:
        """A Job that carries this mark."""
        both = {names.POD_GROUP_SUSPENDED: mark}
        await self.job(name, suspend=True)
        await self.merge(JOBS, name, {"metadata": {"annotations": both, "labels": both}})

    async def pod(self, name: str, owner: Json | None, *, kind: str = "Job", **meta: Any) -> Json:
        """One that was opened in this generation and has no node, so that it goes when it is deleted."""
        labels = {names.POD_GROUP_LABEL: HELD} | meta.pop("labels", {})
        notes = {names.POD_GROUP_OPENED: decode.format_opened(3, 0.0)}
        if owner is not None:
            said = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
            version = {"Job": "batch/v1"}.get(kind, "example.com/v1")
            meta["ownerReferences"] = [{"apiVersion": version, "kind": kind, **said}]
            labels[names.JOB_CONTROLLER_UID] = owner["metadata"]["uid"]
        body = {
            "metadata": {"name": name, "labels": labels, "annotations": notes, **meta},
            "spec": {"containers": [MAIN]},
        }
        return await self.client.create(PODS, body, NAMESPACE)

    async def get(self, kind: Resource, name: str) -> Json | None:
        try:
            return await self.client.get(kind, name, NAMESPACE)
        except NotFound:
            return None

    async def merge(self, kind: Resource, name: str, body: Json) -> Json:
        return await self.client.patch(kind, name, NAMESPACE, body=body, patch=PatchType.MERGE)

    async def seen(self) -> list[GroupSnapshot]:
        pods = await self.client.list(PODS, NAMESPACE, label_selector=names.POD_GROUP_LABEL)
        return [group_snapshot(*pods["items"], of=KEY, record=RECORD)]

    async def advance(self) -> float | EvictionResult:
        return await self.evictor.advance_eviction(await self.seen(), RECORD)

    async def mark_of(self, kind: Resource, name: str) -> tuple[Any, str | None]:
        """Whether it is suspended, and whose mark it carries."""
        found = await self.get(kind, name)
        assert found is not None
        notes = found["metadata"].get("annotations", {}).get(names.POD_GROUP_SUSPENDED)
        assert notes == found["metadata"].get("labels", {}).get(names.POD_GROUP_SUSPENDED)
        return found["spec"].get("suspend", False), notes


@pytest.fixture
async def place() -> AsyncIterator[EvictorHarness]:
    async with ApiServer() as server:
        access = Access(server=server.url)
        async with Client(access) as client, RacingClient(access) as ours:
            ours.calls = []
            yield EvictorHarness(client, ours)


async def test_a_pod_that_has_changed_since_the_plan_is_not_detached(place: EvictorHarness) -> None:
    """It may have succeeded meanwhile, and its Job must hear of that."""
    await place.pod("a", await place.job(podFailurePolicy=FATAL))

    async def succeed() -> None:
        body = {"status": {"phase": "Succeeded"}}
        await place.client.patch(PODS, "a", NAMESPACE, body=body, patch=PatchType.MERGE, subresource="status")

    place.ours.before = PODS, succeed
    assert await place.advance() == CONFLICT_RETRY_SECONDS
    kept = await place.get(PODS, "a")
    assert kept is not None
    assert kept["metadata"]["ownerReferences"]
    assert await place.advance() == EvictionResult()
    assert await place.get(PODS, "a") is not None


async def test_an_owner_that_has_changed_since_the_plan_is_read_again(place: EvictorHarness) -> None:
    """Its user has suspended it meanwhile: then it is not ours to resume."""
    await place.pod("a", await place.job())
    place.ours.before = JOBS, lambda: place.merge(JOBS, "work", {"spec": {"suspend": True}})
    assert await place.advance() == CONFLICT_RETRY_SECONDS
    assert await place.advance() == RECHECK_SECONDS
    assert await place.mark_of(JOBS, "work") == (True, None)
    await place.evictor.resume_owners(HELD, 3)
    assert await place.mark_of(JOBS, "work") == (True, None)


@pytest.mark.parametrize("kind", ["Job", "Other"])
async def test_a_namesake_made_meanwhile_is_not_touched(place: EvictorHarness, kind: str) -> None:
    owner = await place.job(podFailurePolicy=FATAL)
    old = await place.pod("a", owner, kind=kind)

    async def again() -> None:
        await place.client.delete(PODS, "a", NAMESPACE)
        namesake = await place.pod("a", owner, kind=kind, labels={names.POD_GROUP_LABEL: "0"})
        assert namesake["metadata"]["uid"] != old["metadata"]["uid"]

    place.ours.before = PODS, again
    await place.advance()
    kept = await place.get(PODS, "a")
    assert kept is not None
    assert kept["metadata"]["ownerReferences"]
    assert "deletionTimestamp" not in kept["metadata"]
    assert names.DISRUPTION_TARGET not in {it["type"] for it in kept.get("status", {}).get("conditions", ())}


async def test_a_namesake_of_a_jobset_is_not_suspended_for_pods_of_the_one_before(place: EvictorHarness) -> None:
    """Though a pod of the new one is looked at first."""
    await jobset_crd.install(place.client)
    jobset = await place.client.create(JOBSETS, manifests.jobset("train"), NAMESPACE)
    old = {"apiVersion": jobset["apiVersion"], "kind": "JobSet", "name": "train", "controller": True, "uid": "gone"}
    before, after = await place.job("before"), await place.job("after")
    labels = {names.JS_NAME: "train"}
    await place.merge(JOBS, "before", {"metadata": {"ownerReferences": [old], "labels": labels, "finalizers": ["a/b"]}})
    new = old | {"uid": jobset["metadata"]["uid"]}
    await place.merge(JOBS, "after", {"metadata": {"ownerReferences": [new], "labels": labels}})
    held = await place.pod("a-new", after, labels=labels)
    await place.client.delete(PODS, "a-new", NAMESPACE)
    gates = {"schedulingGates": [{"name": names.POD_GROUP_GATE}], "containers": [MAIN]}
    meta = {key: held["metadata"][key] for key in ("name", "labels", "ownerReferences")}
    await place.client.create(PODS, {"metadata": meta, "spec": gates}, NAMESPACE)
    await place.pod("b-old", before, labels=labels)
    assert await place.advance() == RECHECK_SECONDS
    assert await place.mark_of(JOBSETS, "train") == (False, None)


async def test_nothing_is_read_again_while_nothing_changes(place: EvictorHarness) -> None:
    await place.pod("a", await place.job())
    assert await place.advance() == RECHECK_SECONDS
    assert await place.mark_of(JOBS, "work") == (True, MARK)
    asked = len(place.ours.calls)
    again = await place.advance()
    assert isinstance(again, float)
    assert again <= RECHECK_SECONDS
    assert len(place.ours.calls) == asked
    await place.client.delete(PODS, "a", NAMESPACE)
    assert await place.advance() == EvictionResult()


async def test_one_error_leaves_the_others_done(place: EvictorHarness) -> None:
    """The next look does what was left."""
    for name in "abc":
        await place.pod(name, await place.job(name), kind="Other")

    async def refuse() -> None:
        raise ServerError(500, "InternalError", "no")

    place.ours.before = PODS, refuse
    with pytest.raises(ServerError):
        await place.advance()
    assert await place.advance() == RECHECK_SECONDS
    assert await place.advance() == EvictionResult()


async def test_a_gated_jobset_is_suspended_only_when_its_jobs_have_observed_the_deletions(
    place: EvictorHarness,
) -> None:
    """Else the Job controller would wait for minutes to hear of pods that it has forgotten a moment later."""
    await jobset_crd.install(place.client)
    workers = manifests.replicated_job(
        job={"podFailurePolicy": FATAL}, pod_metadata={"labels": {names.GATED: names.GATED_VALUE}}
    )
    jobset = await place.client.create(JOBSETS, manifests.jobset("train", replicated_jobs=[workers]), NAMESPACE)
    job = await place.job(podFailurePolicy=FATAL)
    above = {"apiVersion": jobset["apiVersion"], "kind": "JobSet", "name": "train", "controller": True}
    meta = {"ownerReferences": [above | {"uid": jobset["metadata"]["uid"]}], "labels": {names.JS_NAME: "train"}}
    await place.merge(JOBS, "work", {"metadata": meta})
    await place.pod("a", job, labels={names.JS_NAME: "train"})
    assert await place.advance() == RECHECK_SECONDS
    assert await place.get(PODS, "a") is None
    assert await place.mark_of(JOBSETS, "train") == (False, MARK)
    assert await place.advance() == RECHECK_SECONDS
    await asyncio.sleep(RECHECK_SECONDS / 2)
    await place.advance()
    assert await place.mark_of(JOBSETS, "train") == (False, MARK)
    await asyncio.sleep(RECHECK_SECONDS / 2)
    assert await place.advance() == CONFLICT_RETRY_SECONDS
    assert await place.mark_of(JOBSETS, "train") == (True, MARK)
    assert await place.advance() == EvictionResult()
    await place.evictor.resume_owners(HELD, 3)
    assert await place.mark_of(JOBSETS, "train") == (False, None)
    assert await place.mark_of(JOBS, "work") == (False, None)


async def test_only_what_this_group_has_suspended_is_resumed(place: EvictorHarness) -> None:
    marks = {"mine": MARK, "older": f"{HELD}.2", "newer": f"{HELD}.4", "another": "0.3", "odd": "x"}
    for name, mark in marks.items():
        await place.suspended(name, mark)
    await place.job("users", suspend=True)
    await place.evictor.resume_owners(HELD, 3, NAMESPACE)
    resumed = {name for name in (*marks, "users") if not (await place.mark_of(JOBS, name))[0]}
    assert resumed == {"mine", "older"}
    await place.evictor.resume_owners_where(lambda mark: mark[0] == "0")
    assert await place.mark_of(JOBS, "another") == (False, None)
    assert await place.mark_of(JOBS, "newer") == (True, f"{HELD}.4")


async def test_an_owner_that_a_webhook_does_not_let_resume_is_tried_again_after_a_pause(place: EvictorHarness) -> None:
    await place.suspended()
    place.ours.refusals = 3
    before = asyncio.get_running_loop().time()
    await place.evictor.resume_owners(HELD, 3)
    assert await place.mark_of(JOBS, "work") == (False, None)
    assert asyncio.get_running_loop().time() - before >= 3 * RESUME_INTERVAL
