"""Every pod of the chart is restricted, hooks and `helm test` included; a real API server is the judge."""

from pathlib import Path

import pytest

from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import NAMESPACES, PODS
from tests.chart.helm import Helm, merged
from tests.chart.test_certificates import MODES
from tests.chart.test_pods import REMOVED, pods
from tests.fakes.service_accounts import ACCOUNTS
from tests.tools import catalog

pytestmark = pytest.mark.real
RESTRICTED = {f"pod-security.kubernetes.io/{what}": "restricted" for what in ("enforce", "warn", "audit")}


@pytest.mark.parametrize("mode", MODES)
async def test_every_pod_of_the_chart_is_let_into_a_restricted_namespace(
    client: Client, namespace: str, mode: str, tmp_path: Path
) -> None:
    await client.patch(NAMESPACES, namespace, body={"metadata": {"labels": RESTRICTED}}, patch=PatchType.MERGE)
    found = Helm(4, catalog.helm(4), tmp_path).render(merged(REMOVED, MODES[mode]), namespace=namespace)
    for one in found.kind("ServiceAccount"):
        await client.create(ACCOUNTS, {"metadata": {"name": one["metadata"]["name"], "namespace": namespace}})
    tried = dict(pods(found))
    # Webhook, controller, the Jobs that take the field out and let held pods go, the pod of `helm test`.
    assert len(tried) == 5, list(tried)
    for name, spec in tried.items():
        await client.create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace, dry_run=True)
