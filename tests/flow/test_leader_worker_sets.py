"""K5, K6, K7: groups of a LeaderWorkerSet on a real API server, with the real StatefulSet controller and garbage
collector. What LWS does between a LeaderWorkerSet and its StatefulSets is played, and so are nodes and kubelets.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import Verdict
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import LEADER_WORKER_SETS, PODS
from jobset_gate.settings import Gangs, Settings
from jobset_gate.sources.table import LWS
from tests.fakes import lws_standin
from tests.fakes.admission_server import registered_for_leader_worker_sets
from tests.fakes.leader_worker_sets import NAME, leader_worker_set
from tests.flow.environment import Environment, alive, condition, environment, runs, with_stream
from tests.plane.planes import Plane

pytestmark = pytest.mark.real

Json = dict[str, Any]
GATED = {names.CONFIG: "{}"}
GANGS = Gangs(sources=("jobset", "job", "lws"))


class Stage:
    """One namespace with LWS."""

    def __init__(self, env: Environment) -> None:
        self.env, self.client, self.namespace = env, env.client, env.namespace

    async def make(self, **more: Any) -> None:
        made = leader_worker_set(**more)
        made["metadata"]["namespace"] = self.namespace
        await self.client.create(LEADER_WORKER_SETS, made, self.namespace)

    async def change(self, *operations: Json) -> None:
        await self.client.patch(LEADER_WORKER_SETS, NAME, self.namespace, body=list(operations), patch=PatchType.JSON)

    async def until_started(self) -> None:
        await self.env.until_condition(NAME, names.REASON_STARTED, resource=LEADER_WORKER_SETS)

    async def verdict(self, group: int = 0) -> Verdict:
        return await self.env.until_verdict(f"{NAME}-{group}", source=LWS)

    async def leader(self, group: int = 0) -> str:
        return str((await self.client.get(PODS, f"{NAME}-{group}", self.namespace))["metadata"]["uid"])


def running(pods: list[Json]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods if runs(pod)}


@pytest.fixture
async def stage(plane: Plane, namespace: str) -> AsyncIterator[Stage]:
    settings = Settings(gangs=GANGS)
    async with environment(plane, namespace, settings=settings, webhook=False, controller=False) as env:
        await lws_standin.install(env.client)
        async with (
            registered_for_leader_worker_sets(env.client, namespace, with_stream(settings, env.service.url)),
            lws_standin.controller(env.client, namespace),
        ):
            env.start_controller(sources=GANGS.sources)
            yield Stage(env)
            await env.stop_controllers()


async def test_each_group_starts_together_and_the_condition_counts_groups(stage: Stage) -> None:
    await stage.make(notes=GATED, size=3, replicas=2)
    await stage.env.until_running(6)
    await stage.until_started()
    for group in (0, 1):
        verdict = await stage.verdict(group)
        assert verdict.generation.uid == await stage.leader(group)
        assert (verdict.kind, verdict.cause) == ("release", names.REASON_STARTED)


async def test_a_recreated_group_gathers_again_and_workers_of_the_leader_before_do_not_count(stage: Stage) -> None:
    """Deleted in the background: the next leader is there before the old workers are gone."""
    await stage.make(notes=GATED, size=3, replicas=1)
    old = running(await stage.env.until_running(3))
    first = await stage.leader()
    await stage.client.delete(PODS, f"{NAME}-0", stage.namespace)
    await stage.env.until(lambda pods: len(running(pods) - old) == 3)
    second = await stage.leader()
    assert first != second
    assert (await stage.verdict()).generation.uid == second
    await stage.until_started()


async def test_a_rolling_update_makes_each_group_gather_again_with_the_size_of_its_own_leader(stage: Stage) -> None:
    await stage.make(notes=GATED, size=2, replicas=2)
    old = running(await stage.env.until_running(4))
    image = {"op": "replace", "path": "/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/image"}
    size = {"op": "replace", "path": "/spec/leaderWorkerTemplate/size", "value": 3}
    await stage.change(image | {"value": "serve:2"}, size)
    pods = await stage.env.until(lambda pods: len(running(pods) - old) == 6 and not running(pods) & old)
    assert {pod["spec"]["containers"][0]["image"] for pod in pods if alive(pod)} == {"serve:2"}
    await stage.until_started()


async def test_the_condition_goes_with_the_annotation(stage: Stage) -> None:
    await stage.make(notes=GATED, size=2, replicas=1)
    await stage.until_started()
    await stage.change({"op": "remove", "path": f"/metadata/annotations/{names.CONFIG.replace('/', '~1')}"})
    await stage.env.until_workload(NAME, lambda it: condition(it) is None, LEADER_WORKER_SETS)


async def test_without_the_annotation_a_set_and_its_pods_stay_as_they_are(stage: Stage) -> None:
    await stage.make(size=2, replicas=1)
    for pod in await stage.env.until_running(2):
        assert names.GATED not in pod["metadata"]["labels"]
        assert "initContainers" not in pod["spec"]
