"""The chart on a real API server: installed, upgraded while the webhook writes into its objects, and uninstalled."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import LEASES, MUTATING_WEBHOOKS, SECRETS
from tests.chart.cluster import (
    AS_WRITTEN,
    BUNDLE,
    CONFIGURATIONS,
    ChartRelease,
    fresh_release,
    kept,
    lowered,
    written_by_the_webhook,
)
from tests.chart.helm import RELEASE, Helm, HelmError, at, merged
from tests.plane.planes import Real
from webhook.certs import ca
from webhook.certs.rotation import CaSecretContents
from webhook.certs.sources import CaSecretStore, StoredCaSecret

pytestmark = pytest.mark.real

WITHOUT_GROUPS = at("groups.enabled", False)
IGNORED = at("webhook.failurePolicy", "Ignore")
WITHOUT_PODS = CONFIGURATIONS[:2]
EVERYTHING = merged(
    at("networkPolicy.enabled", True),
    at("metrics.dashboards.enabled", True),
    at("gangs.sources", ["jobset", "job", "startgroup"]),
)


@pytest.fixture
async def release(real_plane: Real, helm: Helm) -> AsyncIterator[ChartRelease]:
    async with fresh_release(real_plane, helm) as made:
        yield made


async def test_every_object_is_stored_as_rendered_and_uninstalling_leaves_nothing(release: ChartRelease) -> None:
    """Neither what the chart creates nor what the programs write into it is left. Meanwhile a second one is refused."""
    said = await release.install(EVERYTHING)
    assert "STATUS: deployed" in said
    objects = release.helm.render(EVERYTHING, namespace=release.namespace)
    expected = [one for one in objects.all if "helm.sh/hook" not in one["metadata"].get("annotations", {})]
    listed: Any = {"apiVersion": "v1", "kind": "List", "items": expected}
    found = await release.plane.kubectl("get", "-f", "-", "-o", "json", stdin=listed)
    assert len(found.json["items"]) == len(expected) > 20
    for wanted, there in zip(expected, found.json["items"], strict=True):
        assert list(differences(wanted, there)) == [], wanted["metadata"]["name"]
    with pytest.raises(HelmError, match=r"jobset-gate.* exists and cannot be imported"):
        await ChartRelease(release.plane, release.helm, "default").install()
    async with release.plane.client() as client:
        for resource, name in CONFIGURATIONS:  # the refused installation has changed none
            service = (await client.get(resource, name))["webhooks"][0]["clientConfig"]["service"]
            assert service["namespace"] == release.namespace
        await written_by_the_webhook(client, release.namespace)
        assert len(await release.left()) > 20
        await release.uninstall()
        await release.until_nothing_is_left()
        assert (await client.list(LEASES, release.namespace))["items"] == []
    rest = await release.plane.kubectl("get", "secrets,configmaps,serviceaccounts", "-n", release.namespace, "-oname")
    assert set(rest.stdout.split()) <= {"configmap/kube-root-ca.crt", "serviceaccount/default"}


async def test_upgrades_leave_alone_what_the_webhook_has_written(release: ChartRelease, tmp_path: Path) -> None:
    """Helm 3 merges three ways and Helm 4 applies on the server's side: neither wipes it, neither conflicts.

    The first is an upgrade of the version before, here without groups: they come with it and go with a later one.
    """
    await release.install(WITHOUT_GROUPS, chart=lowered(tmp_path, "0.0.9"))
    async with release.plane.client() as client:
        as_installed = {"bundles": [None, None], "secret": None, "holder": None}
        assert await kept(client, release.namespace, WITHOUT_PODS) == as_installed
        await written_by_the_webhook(client, release.namespace, WITHOUT_PODS)
        await release.upgrade(EVERYTHING)
        assert await kept(client, release.namespace, WITHOUT_PODS) == AS_WRITTEN | {"bundles": [BUNDLE, BUNDLE]}
        pods = await release.plane.kubectl("get", "deployments", "-n", release.namespace, "-ojson")
        for one in pods.json["items"]:
            assert one["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/version"] == "0.1.0"
            assert one["metadata"]["labels"]["helm.sh/chart"] == "jobset-gate-0.1.0"
        await written_by_the_webhook(client, release.namespace)
        await release.upgrade(IGNORED)
        assert await kept(client, release.namespace) == AS_WRITTEN
        assert await policy(client) == "Ignore"
        contents = await created_again(client, release.namespace)
        await release.upgrade(merged(IGNORED, WITHOUT_GROUPS))
        with pytest.raises(NotFound):
            await client.get(MUTATING_WEBHOOKS, names.POD_WEBHOOK)
        await release.run("rollback", "1")
        assert await policy(client) == "Fail"
        written = {"bundles": [BUNDLE, BUNDLE], "secret": contents, "holder": AS_WRITTEN["holder"]}
        assert await kept(client, release.namespace, WITHOUT_PODS) == written


async def policy(client: Client) -> str:
    resource, name = CONFIGURATIONS[0]
    return str((await client.get(resource, name))["webhooks"][0]["failurePolicy"])


async def created_again(client: Client, namespace: str) -> Any:
    """By webhook and controller, after a deletion: neither owns any field that Helm writes. The Secret's data."""
    await client.delete(SECRETS, f"{RELEASE}-ca", namespace)
    await client.delete(LEASES, names.LEASE, namespace)
    signer = ca.create("ca", now=datetime.now(UTC), life=timedelta(days=1))
    store = CaSecretStore(client, namespace, f"{RELEASE}-ca")
    await store.write(StoredCaSecret("", None), CaSecretContents((signer,), (signer.certificate,)))
    lease = {"metadata": {"name": names.LEASE}, "spec": {"holderIdentity": AS_WRITTEN["holder"]}}
    await client.create(LEASES, lease, namespace)
    return (await client.get(SECRETS, f"{RELEASE}-ca", namespace))["data"]


async def test_what_one_helm_has_installed_the_other_takes_over(
    real_plane: Real, release: ChartRelease, other_helm: Helm
) -> None:
    """And gives it back: people upgrade their Helm, and some of them return."""
    await release.install()
    async with real_plane.client() as client:
        await written_by_the_webhook(client, release.namespace)
        await release.upgrade(at("webhook.replicaCount", 3), by=other_helm)
        await release.upgrade(at("webhook.replicaCount", 1))
        assert await kept(client, release.namespace) == AS_WRITTEN
    await release.uninstall(by=other_helm)
    await release.until_nothing_is_left()


def differences(wanted: Any, found: Any, path: str = "") -> Any:
    """Requested values that differ; what the server has added does not count."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key, value in wanted.items():
            yield from differences(value, found.get(key), f"{path}.{key}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif wanted != found and not (wanted in ({}, [], None) and found is None):
        yield path, wanted, found
