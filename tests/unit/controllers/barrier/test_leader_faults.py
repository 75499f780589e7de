"""Never a leader that does nothing, never two that write (faults.md 5): two whole controllers on one API server."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from prometheus_client import CollectorRegistry

from controllers.manager import Manager, ManagerOptions
from jobset_gate import names
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import LeadershipLost
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, LEASES
from jobset_gate_demo.fake import jobset_crd, manifests
from jobset_gate_demo.fake.apiserver import ApiServer
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.background import in_background
from tests.fakes.faults import ALWAYS, WRITES, Faults, Match
from tests.fakes.jobsets import injected

NAMESPACE = "default"
DEADLINE = 10.0
"""Seconds in which a leader renews its lease: the default."""


async def decided(client: Client) -> set[str]:
    """The gangs whose ConfigMap has a verdict."""
    config_maps = (await client.list(CONFIGMAPS, NAMESPACE))["items"]
    found = [it["metadata"]["name"] for it in config_maps if names.KEY_VERDICT in it.get("data", {})]
    return {name.removesuffix(names.CONFIG_MAP_SUFFIX) for name in found}


async def test_a_leader_whose_renewal_hangs_stops_writing_before_the_lease_can_be_taken_and_ends(
    clock: VirtualClock,
) -> None:
    faults, writes = Faults(), list[float]()

    def manager(identity: str) -> Manager:
        options = ManagerOptions(
            namespace=NAMESPACE, identity=identity, extend_crd=False, registry=CollectorRegistry(), clock=clock
        )
        return Manager(Access(server=server.url), options)

    async with ApiServer(hooks=faults, clock=clock) as server, Client(Access(server=server.url)) as client:
        await jobset_crd.install(client)
        first, second = manager("first"), manager("second")
        async with AsyncExitStack() as running:
            leader = await running.enter_async_context(in_background(first.run()))
            await first.leading.wait()
            await running.enter_async_context(in_background(second.run()))
            await second.serving.wait()
            faults.on_write(lambda _: writes.append(clock()), Match(CONFIGMAPS, WRITES), times=ALWAYS)
            of_the_first = Match(LEASES, WRITES, when=lambda call: b'"first"' in call.body)
            hanging = faults.hang(of_the_first, times=ALWAYS)
            gangs: set[str] = set()
            since, ended, begun = clock(), 0.0, 0.0
            while not begun:
                name = f"gang-{len(gangs)}"
                gangs.add(name)
                # To be released as soon as it is seen.
                user = manifests.gang(name, NAMESPACE, jobs=1, pods=1, annotations={names.BYPASS: "true"})
                await client.create(JOBSETS, injected(user), NAMESPACE)
                await asyncio.sleep(0.5)
                ended = ended or (clock() if leader.done() else 0.0)
                begun = clock() if second.leading.is_set() else 0.0
            assert ended, "it has not ended, and another leads"
            with pytest.raises(ExceptionGroup) as lost:
                leader.result()
            assert lost.group_contains(LeadershipLost)
            assert ended - since <= DEADLINE + 1
            between = [at for at in writes if since + DEADLINE < at < begun - 0.5]
            assert between == [], "nobody may write there"
            assert any(since < at <= since + DEADLINE for at in writes), "while the lease was its own it worked on"
            await asyncio.sleep(2.0)
            assert await decided(client) == gangs
            hanging.released.set()
