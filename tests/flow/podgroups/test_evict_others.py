"""Members that no Job has made: deleted and made again, or named where nobody would make them again (G4)."""

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.model import Format
from jobset_gate_demo.fake.view import ObjectView
from tests.fakes.podgroups import manifests
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.evictions import GANG, ManualEviction, all_held, living, placed, uids

Json = dict[str, Any]


def owner(kind: str, replicas: int) -> Json:
    """A controller whose pods are of the gang, all made at once."""
    template = manifests.job("x", GANG, replicas, Format.ALIBABA, replicas)["spec"]["template"]
    template["metadata"]["labels"]["app"] = "web"
    template["spec"] |= {"restartPolicy": "Always"}
    spec: Json = {"replicas": replicas, "template": template}
    if kind == "ReplicationController":
        return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec}
    spec["selector"] = {"matchLabels": {"app": "web"}}
    spec |= {"podManagementPolicy": "Parallel", "serviceName": "web"} if kind == "StatefulSet" else {}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec}


class DisruptedPods:
    """Which pods had the condition at any time, and with which reason."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}

    def note(self, pod: Json) -> None:
        for one in pod.get("status", {}).get("conditions", ()):
            if one["type"] == names.DISRUPTION_TARGET and one["status"] == "True":
                self.reasons[pod["metadata"]["uid"]] = one["reason"]


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "ReplicationController", "Deployment"])
async def test_pods_of_other_controllers_are_disrupted_and_deleted_and_made_again(
    make_stage: MakeGroupEnvironment, kind: str
) -> None:
    """Bound or not. A StatefulSet's new pods have the old ones' names."""
    async with make_stage(kubelets=True, nodes={"n": "2"}, controller=False) as stage:
        rolling, disrupted = ManualEviction(stage, minimum=3), DisruptedPods()
        await stage.apply(owner(kind, 3))
        old = await stage.until(all_held(3))
        await rolling.open(old)
        await stage.until(placed(2, 2, 3))
        async with ObjectView(stage.client, PODS, stage.namespace, each=disrupted.note):
            rolled = await rolling.roll_back()
            await rolling.resume()
            await stage.until(all_held(3, but=uids(old)))
        assert rolled.blocked == ()
        assert disrupted.reasons == dict.fromkeys(uids(old), names.REASON_DISRUPTED)


async def test_bare_pods_are_never_deleted_and_all_others_are(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(kubelets=True, nodes={"n": "3"}, controller=False) as stage:
        rolling = ManualEviction(stage, minimum=4)
        bare = await stage.create(*(manifests.pod(name, GANG, Format.ALIBABA, 4) for name in ("one", "two")))
        await stage.apply(owner("ReplicaSet", 2))
        held = await stage.until(all_held(4))
        await rolling.open(held)
        await stage.until_bound(3)
        rolled = await rolling.roll_back()
        assert rolled.blocked == ("one", "two")
        assert rolled.why == "nobody would make them again, so they are left to you to delete: one, two"
        left = await stage.until(lambda pods: len(living(pods)) == 4 and set(uids(bare)) <= set(uids(living(pods))))
        assert {one["metadata"]["name"] for one in living(left) if not manifests.gated(one)} == {"one", "two"}
        # Their user takes them away, and there is nothing left to be taken back.
        await stage.delete_pod("one")
        await stage.delete_pod("two")
        assert (await rolling.roll_back()).blocked == ()
