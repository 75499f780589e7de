"""The hand-over to the scheduler's own gangs, on a real control plane with those features on, half on, and off (G6)."""

import pytest

from controllers.podgroups import native
from jobset_gate import names
from jobset_gate.cli.doctor.native_probe import NOT_HELD, probe_native
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import PODS, Resource, native_pod_groups
from jobset_gate.settings import Groups, Native
from tests.fakes.object_view import ObjectView
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import bound, gated
from tests.flow.podgroups.environment import GroupEnvironment, group_environment
from tests.plane.places import Binaries
from tests.plane.planes import Real, fresh_name
from tests.plane.real import RealPlane

pytestmark = pytest.mark.real
ON = Groups(native=Native.ON)


@pytest.fixture
def plane(real_plane: Real) -> Real:
    """Every program has the features on."""
    return real_plane


async def pod_groups(client: Client) -> Resource:
    """Those of the scheduler, in the newest version that this API server has and that we know."""
    served = await client.first_served(map(native_pod_groups, native.VERSIONS))
    assert served is not None
    return served


async def settle(stage: GroupEnvironment) -> None:
    """Returns once the scheduler has gone through all it had: a pod that comes last is bound."""
    await stage.create(manifests.pod("last", cpu="1m"))
    await stage.until(lambda pods: any(one["metadata"]["name"] == "last" and bound(one) for one in pods))


async def test_a_group_is_placed_atomically_by_the_scheduler(plane: Real, namespace: str) -> None:
    """It is opened although it has no room, and none of it is bound until all of the minimum can be."""
    async with group_environment(plane, namespace, nodes={"a": "2"}, settings=ON) as stage:
        await stage.make_group("ring", 3, wait=300)
        await stage.create(*(manifests.pod(f"p{number}", "ring") for number in range(3)))
        opened = await stage.until(lambda pods: len(pods) == 3 and not any(map(gated, pods)))
        assert {one["spec"]["schedulingGroup"]["podGroupName"] for one in opened} == {
            native.native_name(stage.label("ring"))
        }
        kind = await pod_groups(stage.client)
        found = await stage.until_object(kind, native.native_name(stage.label("ring")), lambda _: True)
        assert found["spec"]["schedulingPolicy"]["gang"]["minCount"] == 3
        await settle(stage)
        assert [one["metadata"]["name"] for one in stage.pods.all() if bound(one)] == ["last"]
        await stage.add_node("b", "2")
        await stage.until_bound(3, "ring")
        record = await stage.recorded("ring")
        assert record.how == "Native"


async def test_without_the_feature_the_dropped_field_is_noticed_and_the_group_stays_gated(
    scheduled_plane: Real,
) -> None:
    namespace = fresh_name()
    await scheduled_plane.make_namespace(namespace)
    async with group_environment(scheduled_plane, namespace, nodes={"a": "8"}, settings=ON) as stage:
        await stage.make_group("ring", 2)
        await stage.create(manifests.pod("p0", "ring"), manifests.pod("p1", "ring"))
        reported = await stage.until_event("ring", names.REASON_NATIVE_UNAVAILABLE)
        assert "groups.native is On" in reported
        await settle(stage)
        assert all(gated(one) for one in manifests.of_group(stage.pods.all(), "ring"))


async def test_native_is_never_used_where_it_is_off(plane: Real, namespace: str) -> None:
    """Not even where the cluster has it."""
    async with group_environment(plane, namespace, nodes={"a": "8"}) as stage:
        await stage.make_group("ring", 2)
        made = await stage.create(manifests.pod("p0", "ring"), manifests.pod("p1", "ring"))
        await stage.until_bound(2, "ring")
        assert not any("schedulingGroup" in one["spec"] for one in made)
        assert (await stage.client.list(await pod_groups(stage.client), namespace))["items"] == []


async def test_the_probe_finds_that_native_gangs_work(plane: Real, namespace: str) -> None:
    """Also where pods have to be as restricted as Kubernetes knows it."""
    await plane.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    async with group_environment(plane, namespace, nodes={"a": "1"}, controller=False, webhook=False) as stage:
        assert await probe_native(stage.client, namespace, patience=3.0) is None
        assert (await stage.client.list(PODS, namespace))["items"] == []
        async with ObjectView(stage.client, await pod_groups(stage.client), namespace) as view:
            await view.until(lambda found: not found)


async def test_the_probe_finds_a_scheduler_whose_gate_is_off(control_plane_binaries: Binaries) -> None:
    with RealPlane(control_plane_binaries, scheduler=True, features=("GenericWorkload",)) as running:
        plane, space = Real(running), fresh_name()
        await plane.make_namespace(space)
        async with group_environment(plane, space, nodes={"a": "1"}, controller=False, webhook=False) as stage:
            assert await probe_native(stage.client, space, patience=10.0) is NOT_HELD
