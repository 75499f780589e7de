"""Leader election on the embedded and on a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jobset_gate.kube.errors import LeadershipLost
from jobset_gate.kube.resources import LEASES
from jobset_gate.runtime.leader_election import LeaderElector, LeaseTiming
from tests.plane.planes import Plane


class Candidate:
    """Leads until it is stopped; quick, since here time is real."""

    def __init__(self, elector: LeaderElector) -> None:
        self.elector = elector
        self.leads = asyncio.Event()
        self.task = asyncio.create_task(elector.run(self._work))

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])

    async def _work(self) -> None:
        self.leads.set()
        await asyncio.Event().wait()


@asynccontextmanager
async def candidate(plane: Plane, namespace: str, name: str) -> AsyncIterator[Candidate]:
    async with plane.client(name) as client:
        made = Candidate(LeaderElector(client, (namespace, "gate"), name, LeaseTiming(3, 2, 0.2)))
        try:
            yield made
        finally:
            await made.stop()


async def test_one_leads_the_other_follows_when_it_stops(plane: Plane, namespace: str) -> None:
    async with plane.client() as client, candidate(plane, namespace, "a") as a:
        await a.leads.wait()
        async with candidate(plane, namespace, "b") as b:
            lease = await client.get(LEASES, "gate", namespace)
            assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseDurationSeconds"]) == ("a", 3)
            assert not b.elector.is_leader
            await a.stop()
            await b.leads.wait()
            lease = await client.get(LEASES, "gate", namespace)
            assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("b", 1)
        lease = await client.get(LEASES, "gate", namespace)
        assert lease["spec"]["holderIdentity"] == ""


async def test_a_leader_whose_lease_is_taken_stops(plane: Plane, namespace: str) -> None:
    async with plane.client() as client, candidate(plane, namespace, "a") as a:
        await a.leads.wait()
        lease = await client.get(LEASES, "gate", namespace)
        await client.delete(LEASES, "gate", namespace, uid=lease["metadata"]["uid"])
        taken = {**lease["spec"], "holderIdentity": "x", "acquireTime": "2026-01-01T00:00:00.000000Z"}
        await client.create(LEASES, {"metadata": {"name": "gate", "namespace": namespace}, "spec": taken})
        await asyncio.wait([a.task])
        assert isinstance(a.task.exception(), LeadershipLost)


async def test_several_who_start_at_once_make_one_leader(plane: Plane, namespace: str) -> None:
    async with (
        candidate(plane, namespace, "a") as a,
        candidate(plane, namespace, "b") as b,
        candidate(plane, namespace, "c") as c,
    ):
        several = [a, b, c]
        waits = [asyncio.create_task(one.leads.wait()) for one in several]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        assert sum(one.elector.is_leader for one in several) == 1
        for wait in waits:
            wait.cancel()
