"""Bad input: a clear reason on the group and on the pods that are to blame, and no other group is the worse for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Invalid
from jobset_gate.kube.resources import CRDS, POD_GROUPS, PODS
from jobset_gate.podgroups import crds, podgroup_status
from jobset_gate.podgroups.model import Format
from tests.fakes.crds import remove_crds
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment, Json

LABEL = "metadata.labels"
NOTE = f"metadata.annotations[{names.KOORDINATOR_PREFIX}"
RANGE = "must be a whole number from 1 to 2147483647"
ALIBABA = f"{LABEL}[{names.ALIBABA_MINIMUM}]"

ON_PODS: dict[str, tuple[Json, str]] = {
    "negative": (
        manifests.membership_metadata("bad", Format.KOORDINATOR_ANNOTATIONS, -4),
        f'{NOTE}min-available]: "-4": {RANGE}',
    ),
    "huge": (manifests.membership_metadata("bad", Format.ALIBABA, 10**12), f'{ALIBABA}: "1000000000000": {RANGE}'),
    "zero": (manifests.membership_metadata("bad", Format.ALIBABA, 0), f'{ALIBABA}: "0": {RANGE}'),
    "waiting-time": (
        manifests.membership_metadata("bad", Format.KOORDINATOR_ANNOTATIONS, 1, waiting_time="soon"),
        f'{NOTE}waiting-time]: "soon": must be a time with its unit, such as 600s or 1h30m',
    ),
    "groups": (
        manifests.membership_metadata("bad", Format.KOORDINATOR_ANNOTATIONS, 1, groups="[team/a"),
        f'{NOTE}groups]: "[team/a": must be a JSON list of "namespace/name"',
    ),
    "mode": (
        manifests.membership_metadata("bad", Format.KOORDINATOR_ANNOTATIONS, 1, mode="Maybe"),
        f'{NOTE}mode]: "Maybe": must be Strict or NonStrict',
    ),
    "name": (
        manifests.membership_metadata("Not_A_Name", Format.KOORDINATOR_ANNOTATIONS, 1),
        f'{NOTE}name]: "Not_A_Name": must be a name that an object can have',
    ),
}
"""What pods say, and what they are reported."""


def with_meta(name: str, meta: Json) -> Json:
    made = manifests.pod(name)
    return made | {"metadata": made["metadata"] | meta}


async def good_one_opens(stage: GroupEnvironment) -> None:
    """A group that came after all the others opens as ever, and none of the others has a node."""
    await stage.create(*(manifests.pod(f"good-{number}", "good", Format.ALIBABA, 2) for number in range(2)))
    await stage.until_bound(2, "good", Format.ALIBABA)
    others = [one for one in stage.pods.all() if not one["metadata"]["name"].startswith("good-")]
    assert others
    assert all(map(gated, others))


async def test_what_pods_say_wrongly_is_reported_on_them_with_field_and_value(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "32"}) as stage:
        for case, (meta, _) in ON_PODS.items():
            named = {key: {k: v.replace("bad", f"bad-{case}") for k, v in of.items()} for key, of in meta.items()}
            await stage.create(with_meta(case, named))
        for case, (_, reported) in ON_PODS.items():
            said = await stage.until_event(case, names.REASON_INVALID_GROUP)
            assert reported in said, case
        await good_one_opens(stage)


async def test_members_that_contradict_each_other_are_reported_with_their_values(
    make_stage: MakeGroupEnvironment,
) -> None:
    async with make_stage(nodes={"n": "32"}) as stage:
        await stage.create(
            manifests.pod("a", "torn", Format.ALIBABA, 2),
            manifests.pod("b", "torn", Format.ALIBABA, 2),
            manifests.pod("c", "torn", Format.ALIBABA, 3),
        )
        for name in "abc":
            said = await stage.until_event(name, names.REASON_INVALID_GROUP, "3 by c")
            assert "members contradict each other: 2 by a, b; 3 by c" in said
        await good_one_opens(stage)


@pytest.mark.parametrize("way", list(manifests.API_GROUP))
@pytest.mark.parametrize("minimum", [-1, 0, None])
async def test_a_pod_group_without_a_good_minimum_says_so_in_its_status(
    make_stage: MakeGroupEnvironment, way: Format, minimum: int | None
) -> None:
    async with make_stage(nodes={"n": "32"}) as stage:
        await stage.make_group("bad", minimum, way)
        await stage.create(manifests.pod("a", "bad", way))
        field = "spec.minMembers" if way is Format.KEP_24 else "spec.minMember"
        value = "null" if minimum is None else str(minimum)
        said = await stage.until_event("bad", names.REASON_INVALID_GROUP)
        assert said.startswith(f"{field}: {value}: must be")
        assert await stage.until_event("a", names.REASON_INVALID_GROUP) == said
        stored = await stage.until_group("bad", lambda it: _reason(it) == names.REASON_INVALID_GROUP, way)
        assert said in str(stored["status"])
        await good_one_opens(stage)


def _reason(group: Json) -> Any:
    return podgroup_status.group_condition(group.get("status") or {}).get("reason")


async def test_a_group_that_is_named_but_absent_waits_and_opens_once_it_is_there(
    make_stage: MakeGroupEnvironment,
) -> None:
    async with make_stage(nodes={"n": "32"}) as stage:
        await stage.create(*(manifests.pod(f"w-{number}", "late", Format.SCHEDULER_PLUGINS) for number in range(2)))
        said = await stage.until_event("w-0", names.REASON_POD_GROUP_MISSING)
        assert f"{stage.namespace}/late" in said
        await good_one_opens(stage)
        await stage.make_group("late", 2)
        await stage.until_bound(2, "late")


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


@asynccontextmanager
async def another_version(client: Client) -> AsyncIterator[str]:
    """Another user's CRD of Koordinator's kind that serves v1beta1 alone; its name."""
    crd = crds.manifest(names.SIGS_GROUP)
    name = crd["metadata"]["name"]
    await remove_crds(client, name)
    del crd["metadata"]["labels"]
    crd["spec"]["versions"][0]["name"] = "v1beta1"
    await client.create(CRDS, crd)
    try:
        yield name
    finally:
        await remove_crds(client, name)


async def test_a_crd_of_another_version_is_named_and_other_ways_go_on(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "32"}, controller=False) as stage, another_version(stage.client) as crd:
        stage.start_controller()
        await stage.create(manifests.pod("a", "ring", Format.KOORDINATOR_POD_GROUP))
        said = await stage.until_event("a", names.REASON_POD_GROUP_MISSING, "v1beta1")
        assert f"the CRD {crd} serves v1beta1, and only v1alpha1 is known here" in said
        stored = await stage.client.get(CRDS, crd)
        assert [one["name"] for one in stored["spec"]["versions"]] == ["v1beta1"], "it is another's"
        await good_one_opens(stage)
        await stage.create(*(manifests.pod(f"k-{number}", "known", Format.KEP_24) for number in range(2)))
        await stage.make_group("known", 2, Format.KEP_24)
        await stage.until_bound(2, "known", Format.KEP_24)


async def test_koordinators_pods_fall_back_to_the_kind_that_is_usable(make_stage: MakeGroupEnvironment) -> None:
    """Its way also takes a PodGroup of scheduler-plugins."""
    async with make_stage(nodes={"n": "32"}, controller=False) as stage, another_version(stage.client):
        stage.start_controller()
        await stage.create(*(manifests.pod(f"k-{number}", "ring", Format.KOORDINATOR_POD_GROUP) for number in range(2)))
        made = manifests.pod_group("ring", 2, Format.SCHEDULER_PLUGINS)
        await stage.client.create(POD_GROUPS[names.PLUGINS_GROUP], made, stage.namespace)
        await stage.until_bound(2, "ring", Format.KOORDINATOR_POD_GROUP)
