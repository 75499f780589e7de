"""The kinds of PodGroups are the controller's, never Helm's: upgrades and uninstallations leave them all alone."""

import pytest

from controllers.podgroups import crds
from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CRDS, POD_GROUPS
from tests.chart.cluster import fresh_release
from tests.chart.helm import Helm, Json, at, merged
from tests.chart.samples import SAMPLES
from tests.plane.planes import Real


def test_the_chart_has_none(helm4: Helm) -> None:
    for values in SAMPLES.values():
        found = helm4.render(merged(values, at("groups.enabled", True)))
        assert found.kind("CustomResourceDefinition") == []


async def uids(client: Client, namespace: str) -> dict[str, str]:
    """Of one PodGroup of each kind, and of the kinds."""
    groups: dict[str, Json] = {it: await client.get(POD_GROUPS[it], "ring", namespace) for it in POD_GROUPS}
    kinds: dict[str, Json] = {name: await client.get(CRDS, name) for name in crds.GROUPS}
    return {key: one["metadata"]["uid"] for key, one in (groups | kinds).items()}


@pytest.mark.real
async def test_pod_groups_survive_two_upgrades_and_the_uninstallation(real_plane: Real, helm4: Helm) -> None:
    """The plane has their kinds, as a controller makes them."""
    async with fresh_release(real_plane, helm4) as release, real_plane.client() as client:
        await release.install()
        for group, resource in POD_GROUPS.items():
            spec = {"minMembers" if group == names.KEP24_GROUP else "minMember": 3}
            await client.create(resource, {"metadata": {"name": "ring"}, "spec": spec}, release.namespace)
        before = await uids(client, release.namespace)
        await release.upgrade(at("webhook.replicaCount", 3))
        await release.upgrade(at("groups.ways", ["alibaba"]))
        assert await uids(client, release.namespace) == before
        await release.uninstall()
        assert await uids(client, release.namespace) == before
