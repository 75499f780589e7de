"""The chart's policy lets the webhook's account write caBundle into its own configurations, and nothing else there."""

from pathlib import Path
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from tests.flow.installed import WEBHOOK, installed
from tests.flow.policies import refused
from tests.plane.planes import Real
from webhook.registration import MUTATING, VALIDATING

pytestmark = pytest.mark.real

Json = dict[str, Any]
OURS: list[tuple[Resource, str]] = [
    (MUTATING_WEBHOOKS, MUTATING),
    (MUTATING_WEBHOOKS, names.POD_WEBHOOK),
    (VALIDATING_WEBHOOKS, VALIDATING),
]
EVERYTHING: Json = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"], "scope": "*"}
OUTSIDE: Json = {"url": "https://outside.example/", "caBundle": "Cg=="}
OWNER: Json = {"apiVersion": "v1", "kind": "Namespace", "name": "none", "uid": "none"}


def put(path: str, value: Any) -> Json:
    return {"op": "add", "path": path, "value": value}


WIDER: dict[str, list[Json]] = {
    "every object of the cluster, sent somewhere else": [
        put("/webhooks/0/rules", [EVERYTHING]),
        put("/webhooks/0/namespaceSelector", {}),
        put("/webhooks/0/matchConditions", []),
        put("/webhooks/0/clientConfig", OUTSIDE),
    ],
    "more kinds": [put("/webhooks/0/rules", [EVERYTHING])],
    "all namespaces": [put("/webhooks/0/namespaceSelector", {})],
    "whatever it is about": [put("/webhooks/0/matchConditions", [])],
    "somewhere else": [put("/webhooks/0/clientConfig", OUTSIDE)],
    "another path": [put("/webhooks/0/clientConfig/service/path", "/other")],
    "nobody has to be asked": [put("/webhooks/0/failurePolicy", "Ignore")],
    "no webhook": [put("/webhooks", [])],
    "a label": [put("/metadata/labels/example.com~1mine", "1")],
    "an owner, with which it goes": [put("/metadata/ownerReferences", [OWNER])],
}


async def test_caBundle_and_nothing_else(real_plane: Real, namespaces: tuple[str, str], tmp_path: Path) -> None:  # noqa: N802 - the field's name
    own, _ = namespaces
    async with (
        installed(real_plane, own, tmp_path) as release,
        real_plane.client() as admin,
        release.client(WEBHOOK) as webhook,
    ):
        for resource, name in OURS:
            for body in WIDER.values():
                with refused():
                    await webhook.patch(resource, name, body=body, patch=PatchType.JSON, dry_run=True)
                # Nobody else is bound: an operator may, and a client that upgrades the chart.
                await admin.patch(resource, name, body=body, patch=PatchType.JSON, dry_run=True)
            bundle = put("/webhooks/0/clientConfig/caBundle", "Cg==")
            stored = await webhook.patch(resource, name, body=[bundle], patch=PatchType.JSON, dry_run=True)
            assert stored["webhooks"][0]["clientConfig"]["caBundle"] == "Cg=="
