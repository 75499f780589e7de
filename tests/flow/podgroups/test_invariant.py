"""At most one group that does not provably fit is open per capacity domain, whatever happens: seen from outside (G3).

No group of the two crowded domains ever has room as a whole, so none of them is ever proven to fit. A third domain has
room for all: a group that comes there and is bound shows that the controller has looked at everybody since.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import LEASES, NODES
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.settings import Groups
from tests.fakes.crash_point import CrashPoint, crash_controllers
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import Json, bound, gated, of_group, opened
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.groups import members, touch_group
from tests.flow.podgroups.observer import HistoryObserver, admitted_together, observing

DOMAINS = {"a": "x", "b": "x", "c": "x", "d": "y", "e": "y"}
"""By group."""
PODS_EACH, ROOM = 3, "2"
WAIT = 60
PROBE = Groups(capacity_check=CapacityCheck.PROBE)


class World:
    """The stage with its crowded domains, and what is done to it."""

    def __init__(self, stage: GroupEnvironment, observer: HistoryObserver) -> None:
        self.stage, self.observer = stage, observer
        self._shown = 0

    async def fill(self) -> None:
        for name, domain in DOMAINS.items():
            await self.stage.make_group(name, PODS_EACH, wait=WAIT)
            await self.stage.apply(manifests.replica_set(name, PODS_EACH, nodeSelector={"domain": domain}))

    async def looked(self) -> None:
        """Returns once the controller has looked at every group, and opened those that it had to."""
        self._shown += 1
        name = f"shown-{self._shown}"
        await self.stage.make_group(name, 1)
        await self.stage.create(*members(name, 1, cpu="10m", nodeSelector={"domain": "z"}))
        await self.stage.until_bound(1, name)

    async def being_tried(self, domain: str) -> str:
        """The one group that is open there, as soon as all is bound of it that can be."""
        groups = [name for name, where in DOMAINS.items() if where == domain]
        pods = await self.stage.until(lambda pods: any(map(half_bound, (of_group(pods, it) for it in groups))))
        return next(it for it in groups if half_bound(of_group(pods, it)))

    async def forward(self, seconds: float) -> None:
        """So much later, and something changes on each group, so that it is looked at."""
        self.stage.clock.forward(seconds)
        for name in DOMAINS:
            await touch_group(self.stage, name)

    async def until_taken_back(self, name: str, generation: int) -> None:
        """Until nothing of that generation is left but pods that are held again."""
        await self.stage.until(
            lambda pods: (
                len(of_group(pods, name)) == PODS_EACH and all(opened(it) != generation for it in of_group(pods, name))
            )
        )


def half_bound(pods: list[Json]) -> bool:
    """As much of it is bound as there is room, and the rest has been let through as well."""
    there = [it for it in pods if "deletionTimestamp" not in it["metadata"]]
    return len(there) == PODS_EACH and sum(map(bound, there)) == int(ROOM) and not any(map(gated, there))


@asynccontextmanager
async def world(make_stage: MakeGroupEnvironment) -> AsyncIterator[World]:
    """Two domains where nobody fits, and one where all do. When it is left all get their room, and must take it."""
    async with make_stage(settings=PROBE, kubelets=True, controller=False) as stage:
        for domain, room in {"x": ROOM, "y": ROOM, "z": "4"}.items():
            await stage.add_node(domain, room, labels={"domain": domain})
        async with observing(stage.client, stage.namespace) as observer:
            made = World(stage, observer)
            yield made
            crowded = (await stage.client.list(NODES, limit=1))["metadata"]["resourceVersion"]
            for domain in "xy":
                await stage.add_node(f"{domain}-more", "16", labels={"domain": domain})
            await made.forward(400)  # a pod that backs off or has lost its record
            await stage.until(lambda pods: all(sum(map(bound, of_group(pods, it))) == PODS_EACH for it in DOMAINS))
            found = [
                (it.kind, it.name, groups) for it, groups in admitted_together(observer.history(int(crowded)), DOMAINS)
            ]
            assert found == []


async def killed_while_opening(world: World, gates: int) -> None:
    """Two replicas; the one that leads dies of the so-many-th gate that it removes, and the other takes over."""
    stage, removed = world.stage, 0

    def last(body: bytes) -> bool:
        nonlocal removed
        removed += names.POD_GROUP_OPENED.encode() in body
        return removed == gates

    with pytest.MonkeyPatch.context() as patched:
        fate = CrashPoint(last_write=last, lands=True)
        crash_controllers(patched, fate)
        first = stage.start_controller(identity="first", leader_elect=True)
        await first.leading.wait()
    second = stage.start_controller(identity="second", leader_elect=True, retry=0.4)
    await second.serving.wait()
    await world.fill()
    await fate.dead.wait()
    await stage.stop_controller()
    # A lease that lasts, or on a slow machine it would pass on before the first one dies; nobody waits for its end.
    nobodys = {"spec": {"holderIdentity": ""}}
    await stage.client.patch(LEASES, names.LEASE, stage.namespace, body=nobodys, patch=PatchType.MERGE)
    await second.leading.wait()


async def test_when_the_leader_changes_in_the_middle_of_an_opening(make_stage: MakeGroupEnvironment) -> None:
    async with world(make_stage) as it:
        await killed_while_opening(it, gates=2)
        await it.looked()
        for domain in "xy":
            await it.being_tried(domain)
        await it.looked()


async def test_when_pods_are_replaced_and_when_groups_are_taken_back_and_the_leader_changes_meanwhile(
    make_stage: MakeGroupEnvironment,
) -> None:
    async with world(make_stage) as it:
        stage = it.stage
        stage.start_controller()
        await it.fill()
        tried = [await it.being_tried(domain) for domain in "xy"]
        for name in tried:
            ours = of_group(stage.pods.all(), name)
            for one in (next(filter(bound, ours)), next(one for one in ours if not bound(one))):
                await stage.delete_pod(one["metadata"]["name"], grace_seconds=0)
        await it.looked()
        assert [await it.being_tried(domain) for domain in "xy"] == tried
        for times in range(2):
            before = {name: max(map(opened, of_group(stage.pods.all(), name))) for name in tried}
            await it.forward(WAIT + 1)
            if times:
                await stage.stop_controller()
                stage.start_controller()
            await asyncio.gather(*(it.until_taken_back(*one) for one in before.items()))
            tried = [await it.being_tried(domain) for domain in "xy"]
            assert not set(tried) & set(before), "they back off, and others have their turn"
            await it.looked()
