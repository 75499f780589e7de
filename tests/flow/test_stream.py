"""The gate stream between webhook, controllers and played pods: arrival, verdict, fail-over, generations (A5, A6)."""

from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.resources import LEASES, PODS, STATEFUL_SETS
from jobset_gate.settings import Gangs, Settings
from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.kubelet import FakeNode
from tests.fakes import start_groups
from tests.fakes.admission_server import registered_for_start_groups
from tests.fakes.eventually import eventually
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import QUICK, Json, barrier, environment, runs, with_stream
from tests.plane.planes import Real

GANG = "gang"
NEVER = 100_000.0
SILENT = replace(QUICK, configmap_sync=NEVER)
"""Kubelets that never sync the ConfigMap."""
MUTE = replace(SILENT, status_delay=NEVER)
"""The same, and they never report what their pods do."""


def patched(pods: list[Json]) -> list[Json]:
    return [pod for pod in pods if names.VERDICT in pod["metadata"]["annotations"]]


# --- Alone -----------------------------------------------------------------------------------------------------------


async def test_the_stream_alone_releases_a_gang_without_a_single_patch(make_stage: MakeEnvironment) -> None:
    async with make_stage(controller=False, behaviour=SILENT) as stage:
        manager = stage.start_controller(patch_concurrency=0)
        await stage.apply(manifests.gang(GANG, jobs=3, pods=4))
        pods = await stage.until_running(12)
        assert not patched(pods)
        assert stage.service.passed == 12
        await stage.until_condition(GANG, names.REASON_STARTED, "all 12 pods started")

        async def counted() -> bool:
            metric = manager.options.registry.get_sample_value
            ended = metric("jobset_gate_stream_requests_total", {"source": "jobset", "outcome": "told"})
            return (ended, metric("jobset_gate_stream_open", {"source": "jobset"})) == (12, 0)

        await eventually(counted)


# --- Arrival ---------------------------------------------------------------------------------------------------------


async def test_announcements_complete_the_gang_before_any_kubelet_has_reported_a_start(
    make_stage: MakeEnvironment,
) -> None:
    async with make_stage(behaviour=MUTE) as stage:
        await stage.apply(manifests.gang(GANG, jobs=2, pods=3))
        verdict = await stage.until_verdict(GANG)
        assert (verdict.kind, verdict.message) == (VerdictKind.RELEASE, "all 6 pods started")
        assert not any(barrier(pod).keys() & {"running", "terminated"} for pod in stage.pods.all())

        async def all_passed() -> bool:
            return stage.service.passed == 6

        await eventually(all_passed)


# --- Who leads, of pods that are gated one by one --------------------------------------------------------------------


@pytest.mark.real
async def test_the_stream_alone_starts_the_pods_of_a_stateful_set_under_another_leader_and_each_replacement(
    real_plane: Real, namespace: str
) -> None:
    sources, small = ("jobset", "startgroup"), (FakeNode("small", pods=2),)
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(
            environment(real_plane, namespace, nodes=small, behaviour=SILENT, controller=False, webhook=False)
        )
        settings = with_stream(Settings(gangs=Gangs(sources=sources)), stage.service.url)
        await stack.enter_async_context(registered_for_start_groups(stage.client, namespace, settings))
        lease = {"leader_elect": True, "retry": 0.4, "patch_concurrency": 0, "sources": sources}
        first = stage.start_controller(identity="first", **lease)
        await stage.actors.until(first.leading.wait())
        second = stage.start_controller(identity="second", **lease)
        await stage.actors.until(second.serving.wait())
        assert not second.stream_url
        await stage.client.create(STATEFUL_SETS, start_groups.stateful_set("set", 3, size=3), namespace)
        await stage.until_held(2)
        # Weeks of gangs that came and went must not stand before those that wait when it takes over.
        for metric in ("workqueue_depth", "workqueue_adds_total"):
            assert second.options.registry.get_sample_value(metric, {"name": "gang", "controller": "gang"}) == 0
        await stage.stop_controller()
        assert not first.stream_url
        await stage.actors.until(second.leading.wait())
        lead = await stage.client.get(LEASES, names.LEASE, namespace)
        assert lead["spec"]["holderIdentity"] == "second"
        await stage.actors.kubelets.add_node(FakeNode(f"{namespace}-late", pods=10))
        pods = await stage.until_running(3)
        gone = {pod["metadata"]["uid"] for pod in pods if pod["metadata"]["name"] == "set-1"}
        await stage.client.delete(PODS, "set-1", namespace)
        pods += await stage.until(lambda now: sum(runs(it) and it["metadata"]["uid"] not in gone for it in now) == 3)
        assert not patched(pods)
        assert stage.service.passed == 4
