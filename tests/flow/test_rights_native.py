"""What the chart gives for `groups.native: On` is enough to hand groups over and take them back, and none is needless.

There is no node: nothing is ever bound, so the group is taken back, and handed over again.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controllers.podgroups import native
from jobset_gate.kube.access import from_kubeconfig
from jobset_gate.kube.resources import native_pod_groups
from jobset_gate.settings import Groups, Native
from tests.fakes.eventually import PATIENCE
from tests.fakes.object_view import ObjectView
from tests.fakes.podgroups import manifests
from tests.flow import rights
from tests.flow.installed import ACCESS, CONTROLLER, Installed, rendered
from tests.flow.podgroups.environment import GroupEnvironment, group_environment
from tests.flow.policies import POLICIES, in_force, probed_last
from tests.plane.planes import Real, fresh_name

pytestmark = pytest.mark.real


@pytest.fixture
async def release(real_plane: Real, tmp_path: Path) -> Installed:
    """The chart's accounts, rights and policies. They go with the plane, which has the scheduler's own PodGroups."""
    plane, own = real_plane, fresh_name()
    await plane.make_namespace(own)
    found = await rendered(own, "groups.native=On")
    access = probed_last([one for one in found if one["kind"] in (*ACCESS, *POLICIES)])
    await plane.kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": access})
    await in_force(plane, own, CONTROLLER)
    return Installed(plane, own, found, tmp_path, webhook_port=0)


@pytest.fixture
async def stage(real_plane: Real, release: Installed, namespace: str) -> AsyncIterator[GroupEnvironment]:
    """A controller that is nobody but the chart's account."""
    settings = Groups(native=Native.ON)
    async with group_environment(real_plane, namespace, settings=settings, controller=False) as made:
        made.start_controller(access=await from_kubeconfig(str(await release.kubeconfig(CONTROLLER))))
        yield made


async def test_handing_over_and_taking_back_takes_exactly_the_rights_that_are_given_for_it(
    stage: GroupEnvironment, release: Installed
) -> None:
    await stage.make_group("ring", 2, wait=1)
    await stage.apply(manifests.job("ring", "ring", 2))
    resource, name = native_pod_groups("v1alpha2"), native.native_name(stage.label("ring"))
    made = await stage.until_object(resource, name, lambda _: True)
    uid = made["metadata"]["uid"]
    async with ObjectView(stage.client, resource, stage.namespace) as view:
        await view.until(lambda found: any(one["metadata"]["uid"] != uid for one in found), PATIENCE)
    rights.check(release, CONTROLLER, await rendered(release.namespace))
