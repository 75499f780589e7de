"""A JobSet or a PodGroup made again under its old name, while what was to be said of the old one is on its way (A5).

The API server does not take metadata.uid in a write of a custom resource's status for a precondition.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest

from controllers.barrier.status import GangStatusWriter
from controllers.podgroups.status_writer import SETTLE_SECONDS, PodGroupStatusWriter
from jobset_gate import names
from jobset_gate.barrier import messages
from jobset_gate.barrier.model import GangKey, VerdictKind
from jobset_gate.fake import manifests
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import JOBSETS, POD_GROUPS, Resource
from jobset_gate.podgroups.status import group_status as group_report
from jobset_gate.runtime.flowcontrol import RateLimiter
from jobset_gate.runtime.store import ObjectVersion
from jobset_gate.runtime.workqueue import Requeue, WorkQueue
from tests.fakes import gangs
from tests.fakes.podgroups.objects import key, pod
from tests.fakes.podgroups.snapshots import group_snapshot
from tests.flow.environment import Json, condition
from tests.plane.planes import Plane

NAME = "train"
PLUGINS = POD_GROUPS[names.PLUGINS_GROUP]


class SlowToPatch(Client):
    """`meanwhile` happens elsewhere while the next of its patches is on its way."""

    def __init__(self, access: Access) -> None:
        super().__init__(access, user_agent=names.PROGRAM)
        self.meanwhile: Callable[[], Awaitable[object]] | None = None
        self.interrupted = 0

    async def patch(self, *args: Any, **more: Any) -> Any:
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
            self.interrupted += 1
        return await super().patch(*args, **more)


@pytest.fixture
async def client(plane: Plane) -> AsyncIterator[SlowToPatch]:
    async with SlowToPatch(plane.access) as opened:
        yield opened


async def made_again(client: Client, resource: Resource, manifest: Json, namespace: str) -> None:
    await client.delete(resource, NAME, namespace)
    await client.create(resource, manifest, namespace)


async def test_a_verdict_on_a_deleted_jobset_is_no_condition_of_the_next_one(
    client: SlowToPatch, namespace: str
) -> None:
    manifest = manifests.gang(NAME, namespace, jobs=1, pods=2, timeout=300)
    old = await client.create(JOBSETS, manifest, namespace)
    version = ObjectVersion(old["metadata"]["uid"], old["metadata"]["resourceVersion"])
    statuses = GangStatusWriter(client, lambda: 0.0, WorkQueue(), version=lambda _: version)
    jobset = msgspec.structs.replace(gangs.jobset(name=NAME, uid=version.uid), namespace=namespace)
    reported = messages.decided(gangs.verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, uid=version.uid))
    client.meanwhile = lambda: made_again(client, JOBSETS, manifest, namespace)
    statuses.set_desired(jobset, reported, "0.0")
    with pytest.raises(Requeue):
        await statuses.reconcile(GangKey(namespace, NAME))
    assert condition(await client.get(JOBSETS, NAME, namespace)) is None


@pytest.mark.parametrize("again", [True, False], ids=["made again", "changed"])
async def test_a_status_of_a_deleted_pod_group_is_none_of_the_next_one(
    client: SlowToPatch, namespace: str, again: bool
) -> None:
    manifest: Json = {"metadata": {"name": NAME}, "spec": {"minMember": 2}}
    old = await client.create(PLUGINS, manifest, namespace)
    now = [100.0]
    statuses = PodGroupStatusWriter(client, RateLimiter(1.0, 9.0), lambda *_: None, lambda: 0.0, lambda: now[0])
    reported = group_report(group_snapshot(pod("a"), of=key(), group=old), 0.0)
    assert (await statuses.write_status(reported) or 0.0) > 0, "words settle first"
    now[0] += SETTLE_SECONDS

    async def changed() -> None:
        live = await client.get(PLUGINS, NAME, namespace)
        await client.replace(PLUGINS, {**live, "status": {"occupiedBy": "a/b"}}, subresource="status")

    client.meanwhile = (lambda: made_again(client, PLUGINS, manifest, namespace)) if again else changed
    assert await statuses.write_status(reported) == SETTLE_SECONDS
    assert client.interrupted == 1
    if not again:
        known = await client.get(PLUGINS, NAME, namespace)
        await statuses.write_status(group_report(group_snapshot(pod("a"), of=key(), group=known), 0.0))
    status = (await client.get(PLUGINS, NAME, namespace)).get("status") or {}
    assert status.get("phase") == (None if again else "Pending")
