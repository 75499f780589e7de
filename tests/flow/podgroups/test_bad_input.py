"""Bad input: a clear reason on the group and on the pods that are to blame, and no other group is the worse for it."""

import pytest

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.errors import Invalid
from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.model import Format
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment

LABEL = "metadata.labels"


async def good_one_opens(stage: GroupEnvironment) -> None:
    """A group that came after all the others opens as ever, and none of the others has a node."""
    await stage.create(*(manifests.pod(f"good-{number}", "good", Format.ALIBABA, 2) for number in range(2)))
    await stage.until_bound(2, "good", Format.ALIBABA)
    others = [one for one in stage.pods.all() if not one["metadata"]["name"].startswith("good-")]
    assert others
    assert all(map(gated, others))


async def test_two_groups_on_one_pod_are_refused_with_both_names(make_stage: MakeGroupEnvironment) -> None:
    both = manifests.pod("both", "one", labels={names.ALIBABA_NAME: "two", names.ALIBABA_MINIMUM: "1"})
    async with make_stage(nodes={"n": "32"}) as stage:
        with pytest.raises(Invalid, match="names two groups, a pod belongs to one") as refused:
            await stage.create(both)
        assert f"{LABEL}[{names.PLUGINS_NAME}] says one" in str(refused.value)
        assert f"{LABEL}[{names.ALIBABA_NAME}] says two" in str(refused.value)


async def test_two_groups_on_a_pod_past_the_webhook_are_reported_on_it(
    make_stage: MakeGroupEnvironment,
) -> None:
    """An edit after it was created: membership stays, and what it says now belongs to two."""
    async with make_stage(nodes={"n": "32"}) as stage:
        await stage.create(manifests.pod("p", "one", Format.ALIBABA, 2))
        body = {"metadata": {"labels": {names.PLUGINS_NAME: "two"}}}
        await stage.client.patch(PODS, "p", stage.namespace, body=body, patch=PatchType.MERGE)
        said = await stage.until_event("p", names.REASON_INVALID_GROUP)
        assert "names two groups, a pod belongs to one" in said
        await good_one_opens(stage)
