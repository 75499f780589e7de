"""What KEP-24 says of its groups beyond the others: their resources must be left of the quota (G4)."""

from typing import Any

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import RESOURCEQUOTAS
from jobset_gate.podgroups.model import Format
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.groups import condition_of

Json = dict[str, Any]
KEP = Format.KEP_24


async def test_total_resources_must_be_left_of_the_namespaces_quota(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "32"}) as stage:
        quota: Json = {"metadata": {"name": "team"}, "spec": {"hard": {"requests.cpu": "7"}}}
        await stage.client.create(RESOURCEQUOTAS, quota, stage.namespace)
        await stage.until_object(RESOURCEQUOTAS, "team", lambda it: "used" in (it.get("status") or {}))
        await stage.create(manifests.pod("others", cpu="3"))
        # More than the quota would leave in whatever order its watch and that of the pods report what is charged.
        await stage.make_group("ring", 2, KEP, resources={"cpu": "10"})
        # They are charged for two of the four that are left.
        await stage.create(*(manifests.pod(name, "ring", KEP) for name in "ab"))
        why = "needs 10 cpu, 4 left in ResourceQuota team"
        await stage.until_group("ring", lambda it: condition_of(it) == (names.REASON_WAITING_FOR_CAPACITY, why), KEP)
        assert sum(map(gated, stage.pods.all())) == 2
        more = {"spec": {"hard": {"requests.cpu": "13"}}}
        await stage.client.patch(RESOURCEQUOTAS, "team", stage.namespace, body=more, patch=PatchType.MERGE)
        await stage.until_bound(3)
