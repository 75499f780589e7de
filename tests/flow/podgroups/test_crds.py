"""The controller's care for the CRDs of pod groups, on a real API server (G5)."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controllers.podgroups import crds
from controllers.podgroups.crds import PodGroupCrdOutcome, PodGroupCrdReconciler
from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CRDS
from jobset_gate.podgroups.model import Format
from jobset_gate.runtime.controller import Controller, ControllerMetrics
from jobset_gate.runtime.informer import object_informer
from jobset_gate.runtime.workqueue import WorkQueue
from tests.fakes.crds import remove_crds
from tests.fakes.eventually import PATIENCE
from tests.fakes.object_view import ObjectView
from tests.fakes.podgroups import manifests
from tests.flow.podgroups.environment import group_environment
from tests.plane.planes import Real, fresh_name

pytestmark = pytest.mark.real
Json = dict[str, Any]
ALL = tuple(crds.GROUPS)
PLUGINS, SIGS, KEP24 = (crds.crd_name(group) for group in (names.PLUGINS_GROUP, names.SIGS_GROUP, names.KEP24_GROUP))


class RecordedOutcomes(PodGroupCrdReconciler):
    """A controller at work; what its passes came to, by CRD."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.outcomes: dict[str, list[PodGroupCrdOutcome]] = {name: [] for name in ALL}
        self._noted = asyncio.Event()

    async def _reconcile(self, name: str) -> tuple[PodGroupCrdOutcome, str]:
        found = await super()._reconcile(name)
        self.outcomes[name].append(found[0])
        self._noted.set()
        return found

    async def until(self, name: str, *wanted: PodGroupCrdOutcome) -> None:
        """Until its passes over that CRD have come to these, one after the other; what lies between does not matter."""
        async with asyncio.timeout(PATIENCE):  # as long as anything may take on a slow machine
            while not _in_order(iter(self.outcomes[name]), wanted):
                self._noted.clear()
                await self._noted.wait()


def _in_order(seen: Iterator[PodGroupCrdOutcome], wanted: tuple[PodGroupCrdOutcome, ...]) -> bool:
    return all(any(one is it for it in seen) for one in wanted)


@asynccontextmanager
async def keeping(client: Client) -> AsyncIterator[RecordedOutcomes]:
    """As the controller does it while it leads."""
    kept, registry = RecordedOutcomes(client), CollectorRegistry()
    queue: WorkQueue[str] = WorkQueue()
    loop = Controller("group-crd", queue, kept.reconcile, ControllerMetrics(registry), workers=1)
    tasks = [asyncio.create_task(loop.run())]
    informers = [object_informer(client, CRDS, name, lambda change: queue.add(change.key[1])) for name in ALL]
    tasks += [asyncio.create_task(one.run()) for one in informers]
    for name in ALL:
        queue.add(name)
    try:
        yield kept
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert [one for one in ended if not isinstance(one, asyncio.CancelledError)] == []


@pytest.fixture
async def client(real_plane: Real) -> AsyncIterator[Client]:
    """On a plane where nobody has installed them, before and after."""
    async with real_plane.client() as client:
        await remove_crds(client, *ALL)
        yield client
        await remove_crds(client, *ALL)


async def served(client: Client, name: str) -> Json:
    """The CRD, once the API server serves its kind."""

    def ready(found: list[Json]) -> bool:
        conditions = next((one["status"].get("conditions") or () for one in found), ())
        return any(it["type"] == "Established" and it["status"] == "True" for it in conditions)

    async with ObjectView(client, CRDS, field_selector=f"metadata.name={name}") as view:
        await view.until(ready)
    return await client.get(CRDS, name)


async def test_missing_ones_are_made_and_take_what_the_designs_say(real_plane: Real, client: Client) -> None:
    async with keeping(client) as kept:
        for name in ALL:
            await kept.until(name, PodGroupCrdOutcome.CREATED, PodGroupCrdOutcome.CURRENT)
            crd = await served(client, name)
            refused = {it["type"] for it in crd["status"]["conditions"] if it["status"] == "False"}
            assert not refused & {"NamesAccepted", "Established"}
            assert not crds.why_unusable(crd)
    everything = [
        manifests.pod_group("a", 3, Format.SCHEDULER_PLUGINS, wait=60, resources={"cpu": "3", "memory": "1Gi"}),
        manifests.pod_group(
            "a", 3, Format.KOORDINATOR_POD_GROUP, wait=600, annotations={names.KOORDINATOR_MODE: "Strict"}
        ),
        manifests.pod_group("a", 3, Format.KEP_24, resources={"cpu": "1500m"}),
    ]
    space = fresh_name()
    await real_plane.make_namespace(space)
    for one in everything:
        await real_plane.kubectl("create", "--validate=strict", "-n", space, "-f", "-", stdin=one)
        kind = f"podgroups.{one['apiVersion'].split('/')[0]}"
        status = {
            "status": {
                "running": 2,
                "conditions": [{"type": names.POD_GROUP_CONDITION, "status": "True", "reason": "x"}],
            }
        }
        await real_plane.kubectl(
            "patch", kind, "a", "-n", space, "--subresource=status", "--type=merge", "-p", json.dumps(status)
        )
        seen = await real_plane.kubectl("get", kind, "a", "-n", space, "-o", "json")
        assert (seen.json["spec"], seen.json["status"]) == (one["spec"], status["status"])
    await real_plane.drop_namespace(space)


def written(crd: Json) -> Json:
    """What clients write of it: the API server itself goes on with the status."""
    meta = {key: crd["metadata"].get(key) for key in ("uid", "generation", "labels", "annotations")}
    return {"spec": crd["spec"], "metadata": meta}


async def test_a_foreign_crd_is_never_written_and_reported_if_it_cannot_be_used(client: Client) -> None:
    theirs, strange = crds.manifest(names.PLUGINS_GROUP), crds.manifest(names.SIGS_GROUP)
    for crd in (theirs, strange):
        del crd["metadata"]["labels"]
        del crd["metadata"]["annotations"][names.POD_GROUP_CRD_REVISION]
    strange["spec"]["versions"][0]["name"] = "v1beta7"
    for crd in (theirs, strange):
        await client.create(CRDS, crd, field_manager="helm")
    before = {name: await served(client, name) for name in (PLUGINS, SIGS)}
    async with keeping(client) as kept:
        await kept.until(PLUGINS, PodGroupCrdOutcome.FOREIGN)
        await kept.until(SIGS, PodGroupCrdOutcome.UNUSABLE)
        assert kept.problems == {names.SIGS_GROUP: f"the CRD {SIGS} serves v1beta7, and only v1alpha1 is known here"}
        for name, seen in before.items():
            assert written(await client.get(CRDS, name)) == written(seen)
        # Its owner goes, and it is ours to make.
        await remove_crds(client, SIGS)
        await kept.until(SIGS, PodGroupCrdOutcome.UNUSABLE, PodGroupCrdOutcome.CREATED, PodGroupCrdOutcome.CURRENT)
        assert kept.problems == {}


async def test_only_fields_of_a_foreign_crd_are_written_and_the_rest_is_in_an_annotation(
    real_plane: Real, client: Client
) -> None:
    """As scheduler-plugins installs it: its status knows no conditions; this one does not count failures either."""
    theirs = crds.manifest(names.PLUGINS_GROUP)
    del theirs["metadata"]["labels"]
    fields = theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    del fields["conditions"], fields["failed"]
    await client.create(CRDS, theirs, field_manager="helm")
    before = (await served(client, PLUGINS))["spec"]
    space = fresh_name()
    await real_plane.make_namespace(space)
    async with group_environment(real_plane, space, nodes={"n": "2"}, controller=False, webhook=False) as stage:
        stage.start_controller(pod_group_crds=True)
        await stage.make_group("ring", 2)
        await stage.create(manifests.held(manifests.pod("one", "ring"), space, "ring"))
        wanted = "Pending: Gathering: 1/2 pods exist"

        def stated(group: Json) -> bool:
            return bool((group["metadata"].get("annotations") or {}).get(names.POD_GROUP_STATE) == wanted)

        found = await stage.until_group("ring", lambda it: stated(it) and bool(it.get("status")))
        assert found["status"] == {"phase": "Pending", "running": 0, "succeeded": 0}
    assert (await client.get(CRDS, PLUGINS))["spec"] == before
    await real_plane.drop_namespace(space)
