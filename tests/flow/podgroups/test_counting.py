"""Who counts as a member, what the numbers of a group say, and what of its pods is not counted (G1, G2, G3)."""

from typing import Any

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.model import Format
from tests.fakes.podgroups import manifests
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.groups import members, until_reason

Json = dict[str, Any]
NOTES, GROUPS = Format.KOORDINATOR_ANNOTATIONS, Format.KOORDINATOR_POD_GROUP
NOT_FOLLOWED = "say something else of their group by now, which is not followed: "


async def edit(stage: GroupEnvironment, pod: str, **meta: Json) -> None:
    await stage.client.patch(PODS, pod, stage.namespace, body={"metadata": meta}, patch=PatchType.MERGE)


async def test_what_a_member_says_later_is_reported_and_not_followed(make_stage: MakeGroupEnvironment) -> None:
    """Neither a label nor an annotation: membership is fixed when a pod is created."""
    async with make_stage(nodes={"n": "32"}) as stage:
        await stage.make_group("ring", 2)
        await stage.make_group("other", 1)
        await stage.create(*members("ring", 1), *(manifests.pod("k-0", "kind", NOTES, 2),))
        await edit(stage, "ring-0", labels={names.PLUGINS_NAME: "other"})
        await edit(stage, "k-0", annotations={names.KOORDINATOR_NAME: "elsewhere"})
        await until_reason(stage, "ring", names.REASON_GATHERING, f"1/2 pods exist; {NOT_FOLLOWED}ring-0")
        assert await stage.record("other") is None
        await stage.create(*members("ring", 1, first=1), manifests.pod("k-1", "kind", NOTES, 2))
        pods = await stage.until_bound(4)
        assert {one["metadata"]["labels"][names.POD_GROUP_LABEL] for one in pods} == {
            stage.label("ring"),
            stage.label("kind", NOTES),
        }
        assert await stage.record("other") is None, "nobody was ever taken for it"
        assert await stage.record("elsewhere", NOTES) is None
