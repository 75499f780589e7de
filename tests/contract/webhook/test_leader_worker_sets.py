"""K3: LeaderWorkerSets and the pods of their groups on a real API server: what is sent and stored, and an outage."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError
from jobset_gate.kube.resources import LEADER_WORKER_SETS, PODS
from jobset_gate.settings import Gangs, Settings
from tests.fakes import leader_worker_sets, lws_standin
from tests.fakes.admission_server import AdmittedObjects, registered_for_leader_worker_sets
from tests.fakes.jobsets import Json, without
from tests.fakes.leader_worker_sets import NAME, leader_worker_set, template

CONFIG = '{ "timeoutAfterSeconds" : 300 }'
GATED = {names.CONFIG: CONFIG}
MARKS = {"labels": {names.GATED: "lws"}, "annotations": {names.CONFIG: CONFIG}}
GANGS = Gangs(sources=("jobset", "lws"))


class Groups(AdmittedObjects):
    async def replace(self, given: Json, there: Json) -> Json:
        here = self.here(given)
        here["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"]
        return await self.client.replace(self.resource, here)

    async def merge(self, change: Json, **more: Any) -> Json:
        return await self.patch(NAME, change, **more)


@pytest.fixture
async def groups(client: Client, namespace: str) -> AsyncIterator[Groups]:
    await lws_standin.install(client)
    async with registered_for_leader_worker_sets(client, namespace, Settings(gangs=GANGS)) as server:
        yield Groups(client, namespace, server, LEADER_WORKER_SETS)


def worker(stored: Json) -> Any:
    """The metadata of the workers' template."""
    return stored["spec"]["leaderWorkerTemplate"]["workerTemplate"].get("metadata")


async def test_marks_without_the_config_are_taken_out(groups: Groups) -> None:
    made = await groups.create(leader_worker_set(notes=GATED))
    another = await groups.merge({"metadata": {"annotations": {names.CONFIG: "{}"}}})
    assert worker(another) == MARKS | {"annotations": {names.CONFIG: "{}"}}
    removed = await groups.merge({"metadata": {"annotations": {names.CONFIG: None}}})
    assert not worker(removed)
    copied = leader_worker_set() | {"spec": made["spec"]}
    assert not worker(await groups.replace(copied, removed))
    await groups.delete(NAME)
    assert not worker(await groups.create(copied))


def odd() -> list[Json]:
    """LeaderWorkerSets without our keys, of shapes that a schema may let through."""
    specs: list[Any] = [..., None, {}, {"leaderWorkerTemplate": None}]
    groups: list[Any] = [{}, {"workerTemplate": None}, {"workerTemplate": {"metadata": None}, "leaderTemplate": None}]
    groups += [{"workerTemplate": {"metadata": meta}} for meta in ({}, {"labels": None}, {"labels": {"app": "x"}})]
    specs += [{"leaderWorkerTemplate": it} for it in groups]
    given = [leader_worker_set(), leader_worker_set(notes={"theirs": "x"}, leader=template({"labels": {"app": "x"}}))]
    for spec in specs:
        plain = without(leader_worker_set(), "spec")
        given.append(plain if spec is ... else plain | {"spec": spec})
    return given


async def test_a_dead_webhook_stops_gated_groups_and_their_pods_alone(groups: Groups) -> None:
    await groups.create(leader_worker_set(notes=GATED))
    groups.counter.sent()
    for change in ({"labels": {"a": "b"}}, {"annotations": {"theirs": "x"}}):
        await groups.merge({"metadata": change})
    await groups.merge({"status": {"replicas": 1}}, subresource="status")
    assert groups.counter.sent() == 0, "what does not matter is not sent"
    await groups.server.stop()
    for body in ({"metadata": {"labels": {"a": "c"}}}, {"metadata": {"finalizers": ["example.com/f"]}}):
        await groups.merge(body)
    for refused in ({"spec": {"replicas": 3}}, {"metadata": {"annotations": {names.CONFIG: None}}}):
        with pytest.raises(ApiError, match=r"mutate-leaderworkersets\.jobset-gate\.dev"):
            await groups.merge(refused)
    await groups.delete(NAME)
    await groups.merge({"metadata": {"finalizers": None}})
    for given in odd():
        await groups.create(given)
        await groups.merge({"metadata": {"annotations": {"theirs": "y"}}, "spec": {"replicas": 7}})
        await groups.merge({"status": {"replicas": 1}}, subresource="status")
        await groups.delete(NAME)
    with pytest.raises(ApiError, match=r"leaderworkerset-pods\.jobset-gate\.dev"):
        await groups.client.create(PODS, leader_worker_sets.pod(), groups.namespace)
    for label in (None, "true"):
        pod = leader_worker_sets.pod(labels={names.GATED: label})
        await groups.client.create(PODS, pod, groups.namespace, dry_run=True)
