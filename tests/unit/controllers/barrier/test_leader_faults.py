"""Never a leader that does nothing, never two that write (faults.md 5): two whole controllers on one API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controllers.manager import Manager, ManagerOptions
from jobset_gate import names
from jobset_gate.injection import inject
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import LeadershipLost
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, LEASES
from jobset_gate.settings import Settings
from jobset_gate_demo.fake import jobset_crd, manifests
from jobset_gate_demo.fake.apiserver import ApiServer
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.faults import ALWAYS, WRITES, Faults, Match, Rule

NAMESPACE = "default"
DURATION, DEADLINE = 15.0, 10.0


class Pair:
    """The first leads. `writes` has the time of each write of a gang's ConfigMap, by whomever."""

    def __init__(self, server: ApiServer, faults: Faults, client: Client, clock: VirtualClock) -> None:
        self.server, self.faults, self.client, self.clock = server, faults, client, clock
        self.writes: list[float] = []
        self.hanging: list[Rule] = []
        faults.on_write(lambda _: self.writes.append(clock()), Match(CONFIGMAPS, WRITES), times=ALWAYS)
        self.managers: dict[str, Manager] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        for identity in ("first", "second"):
            options = ManagerOptions(
                namespace=NAMESPACE,
                identity=identity,
                extend_crd=False,
                lease_duration=DURATION,
                renew_deadline=DEADLINE,
                registry=CollectorRegistry(),
                clock=self.clock,
            )
            manager = self.managers[identity] = Manager(Access(server=self.server.url), options)
            self.tasks[identity] = asyncio.create_task(manager.run())
            await (manager.leading if identity == "first" else manager.serving).wait()

    async def stop(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)

    async def gang(self, name: str) -> None:
        """One that is to be released as soon as it is seen."""
        user = manifests.gang(name, NAMESPACE, jobs=1, pods=1, annotations={names.BYPASS: "true"})
        gated = inject.injected(user, None, settings=Settings(), token="").document
        await self.client.create(JOBSETS, gated, NAMESPACE)

    async def undecided(self) -> set[str]:
        gangs = {one["metadata"]["name"] for one in (await self.client.list(JOBSETS, NAMESPACE))["items"]}
        gates = (await self.client.list(CONFIGMAPS, NAMESPACE))["items"]
        return gangs - {
            one["metadata"]["name"].removesuffix(names.CONFIG_MAP_SUFFIX)
            for one in gates
            if names.KEY_VERDICT in one.get("data", {})
        }


@pytest.fixture
async def pair(clock: VirtualClock) -> AsyncIterator[Pair]:
    faults = Faults()
    async with ApiServer(hooks=faults, clock=clock) as server, Client(Access(server=server.url)) as client:
        await jobset_crd.install(client)
        made = Pair(server, faults, client, clock)
        await made.start()
        yield made
        for rule in made.hanging:
            rule.released.set()
        await made.stop()


def of_the_first(call: Any) -> bool:
    return b'"first"' in (call.body or b"")


async def test_a_leader_whose_renewal_hangs_stops_writing_before_the_lease_can_be_taken_and_ends(
    pair: Pair, clock: VirtualClock
) -> None:
    pair.hanging.append(pair.faults.hang(Match(LEASES, WRITES, when=of_the_first), times=ALWAYS))
    since = clock()
    ended = begun = 0.0
    number = 0
    while not begun:
        await pair.gang(f"gang-{number}")
        number += 1
        await asyncio.sleep(0.5)
        ended = ended or (clock() if pair.tasks["first"].done() else 0.0)
        begun = clock() if pair.managers["second"].leading.is_set() else 0.0
    assert ended, "it has not ended, and another leads"
    with pytest.raises(ExceptionGroup) as lost:
        pair.tasks["first"].result()
    assert lost.group_contains(LeadershipLost)
    assert ended - since <= DEADLINE + 1
    between = [at for at in pair.writes if since + DEADLINE < at < begun - 0.5]
    assert between == [], "nobody may write there"
    assert any(since < at <= since + DEADLINE for at in pair.writes), "while the lease was its own it worked on"
    await asyncio.sleep(2.0)
    assert await pair.undecided() == set()
