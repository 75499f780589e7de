"""Two replicas, one lease: one writes, the other takes over with a warm cache."""

import asyncio

from controllers.manager import Manager
from jobset_gate import names
from jobset_gate.fake import manifests
from jobset_gate.fake.kubelet import FakeNode
from jobset_gate.kube.resources import LEASES
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import QUICK_LEASE, Environment

GANGS = {"name": "gang", "controller": "gang"}


async def pair(stage: Environment) -> tuple[Manager, Manager]:
    first = stage.start_controller(identity="first", **QUICK_LEASE)
    await stage.actors.until(first.leading.wait())
    second = stage.start_controller(identity="second", **QUICK_LEASE)
    await stage.actors.until(second.serving.wait())
    return first, second


async def test_the_standby_takes_over_when_the_leader_stops(make_stage: MakeEnvironment) -> None:
    async with make_stage(controller=False, nodes=(FakeNode("small", pods=3),)) as stage:
        first, second = await pair(stage)
        await stage.apply(manifests.gang(jobs=2, pods=2))
        await stage.until_condition("gang", names.REASON_WAITING, "3/4 pods started")
        assert first.leading.is_set()
        assert not second.leading.is_set()
        # Weeks of gangs that came and went must not stand before those that wait when it takes over.
        assert second.options.registry.get_sample_value("workqueue_depth", GANGS) == 0
        assert second.options.registry.get_sample_value("workqueue_adds_total", GANGS) == 0

        await stage.stop_controller()
        await stage.actors.until(second.leading.wait())
        lease = await stage.client.get(LEASES, names.LEASE, stage.namespace)
        assert lease["spec"]["holderIdentity"] == "second"
        await stage.actors.kubelets.add_node(FakeNode(f"{stage.namespace}-late", pods=10))
        await stage.until_running(4)


async def test_a_leader_whose_lease_was_taken_ends_and_another_goes_on(make_stage: MakeEnvironment) -> None:
    async with make_stage(controller=False) as stage:
        _, second = await pair(stage)
        lease = await stage.client.get(LEASES, names.LEASE, stage.namespace)
        lease["spec"]["holderIdentity"] = "second"
        await stage.client.replace(LEASES, lease)
        (ended,), _ = await asyncio.wait(stage.managers, return_when=asyncio.FIRST_COMPLETED)
        assert ended.exception() is not None
        await stage.actors.until(second.leading.wait())
        stage.managers.remove(ended)
        await stage.apply(manifests.gang(jobs=1, pods=2))
        await stage.until_running(2)
