"""A JobSet made again under its old name, while what was to be said of the old one is on its way (A5).

The API server does not take metadata.uid in a write of a custom resource's status for a precondition.
"""

from typing import Any

import msgspec
import pytest
from typing_extensions import override

from controllers.barrier.status import GangStatusWriter
from jobset_gate import names
from jobset_gate.barrier import messages
from jobset_gate.barrier.model import GangKey, VerdictKind
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import JOBSETS
from jobset_gate.runtime.store import ObjectVersion
from jobset_gate.runtime.workqueue import Requeue, WorkQueue
from jobset_gate_demo.fake import manifests
from tests.fakes import gangs
from tests.flow.environment import condition
from tests.plane.planes import Plane


async def test_a_verdict_on_a_deleted_jobset_is_no_condition_of_the_next_one(plane: Plane, namespace: str) -> None:
    manifest = manifests.gang("train", namespace, jobs=1, pods=2, timeout=300)

    class SlowToPatch(Client):
        @override
        async def patch(self, *args: Any, **more: Any) -> Any:
            await self.delete(JOBSETS, "train", namespace)
            await self.create(JOBSETS, manifest, namespace)
            return await super().patch(*args, **more)

    async with SlowToPatch(plane.access, user_agent=names.PROGRAM) as client:
        old = await client.create(JOBSETS, manifest, namespace)
        version = ObjectVersion(old["metadata"]["uid"], old["metadata"]["resourceVersion"])
        statuses = GangStatusWriter(client, lambda: 0.0, WorkQueue(), version=lambda _: version)
        jobset = msgspec.structs.replace(gangs.jobset(name="train", uid=version.uid), namespace=namespace)
        reported = messages.decided(gangs.verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, uid=version.uid))
        statuses.set_desired(jobset, reported, "0.0")
        with pytest.raises(Requeue):
            await statuses.reconcile(GangKey(namespace, "train"))
        assert condition(await client.get(JOBSETS, "train", namespace)) is None
