"""What the chart gives for `groups.native: On` is enough to hand groups over and take them back, and none is needless.

No scheduler runs: nothing is ever bound, so the group is taken back, and handed over again.
"""

from collections.abc import AsyncIterator, Iterator
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
from tests.plane.kinds import install_pod_groups
from tests.plane.places import Binaries
from tests.plane.planes import Real, fresh_name
from tests.plane.real import RealPlane

pytestmark = pytest.mark.real


@pytest.fixture
def plane_with_native_groups(control_plane_binaries: Binaries) -> Iterator[Real]:
    """An API server that has the scheduler's own PodGroups, and writes down who asks what."""
    gates = ("GenericWorkload", "GangScheduling")
    with RealPlane(control_plane_binaries, features=gates, audited=True, prepare=install_pod_groups) as running:
        yield Real(running)


@pytest.fixture
async def release(plane_with_native_groups: Real, tmp_path: Path) -> Installed:
    """The chart's accounts, rights and policies. They go with the plane."""
    plane, own = plane_with_native_groups, fresh_name()
    await plane.make_namespace(own)
    found = await rendered(own, "groups.native=On")
    access = probed_last([one for one in found if one["kind"] in (*ACCESS, *POLICIES)])
    await plane.kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": access})
    await in_force(plane, own, CONTROLLER)
    return Installed(plane, own, found, tmp_path, webhook_port=0)


@pytest.fixture
async def stage(plane_with_native_groups: Real, release: Installed) -> AsyncIterator[GroupEnvironment]:
    """A controller that is nobody but the chart's account."""
    theirs = fresh_name()
    await plane_with_native_groups.make_namespace(theirs)
    settings = Groups(native=Native.ON)
    async with group_environment(plane_with_native_groups, theirs, settings=settings, controller=False) as made:
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
