"""Every pod of the chart is restricted, hooks and `helm test` included; a real API server is the judge."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import NAMESPACES, PODS
from tests.fakes.service_accounts import ACCOUNTS
from tests.flow.installed import rendered
from tests.plane.planes import Real, fresh_name

pytestmark = pytest.mark.real

Json = dict[str, Any]
EVERYTHING = ("crds.keep=false", "tests.enabled=true")
MODES = {
    "own": (),
    "certManager": ("webhook.certificates.mode=certManager",),
    "secret": ("webhook.certificates.mode=secret", "webhook.certificates.secretName=mine"),
}


def pods(manifests: list[Json]) -> list[Json]:
    """One pod of each workload, as its controller would make it."""
    found = []
    for one in manifests:
        template = one if one["kind"] == "Pod" else one.get("spec", {}).get("template")
        if template is not None and "containers" in template.get("spec", {}):
            labels = template["metadata"].get("labels", {})
            found.append({"metadata": {"name": one["metadata"]["name"], "labels": labels}, "spec": template["spec"]})
    return found


@pytest.fixture
async def strict(real_plane: Real) -> AsyncIterator[tuple[Client, str]]:
    """A namespace that takes restricted pods alone."""
    name = fresh_name()
    await real_plane.make_namespace(name)
    async with real_plane.client() as client:
        labels = {f"pod-security.kubernetes.io/{what}": "restricted" for what in ("enforce", "warn", "audit")}
        namespace = await client.get(NAMESPACES, name)
        namespace["metadata"]["labels"] |= labels
        await client.replace(NAMESPACES, namespace)
        yield client, name
    await real_plane.drop_namespace(name)


@pytest.mark.parametrize("mode", MODES)
async def test_every_pod_of_the_chart_is_let_into_a_restricted_namespace(strict: tuple[Client, str], mode: str) -> None:
    client, namespace = strict
    manifests = await rendered(namespace, *EVERYTHING, *MODES[mode])
    for one in manifests:
        if one["kind"] == "ServiceAccount":
            await client.create(ACCOUNTS, {"metadata": {"name": one["metadata"]["name"], "namespace": namespace}})
    tried = pods(manifests)
    # Webhook, controller, the Jobs that take the field out and let held pods go, the pod of `helm test`.
    assert len(tried) == 5, [pod["metadata"]["name"] for pod in tried]
    for pod in tried:
        await client.create(PODS, pod, namespace, dry_run=True)
