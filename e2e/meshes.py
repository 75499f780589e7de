"""A service mesh as far as pods notice: the API server puts a sidecar into each that is created in a namespace."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any, Final

from e2e import commands
from e2e.scenario import Scenario
from e2e.timeouts import TIMEOUT
from jobset_gate_demo.fake import manifests

PROXY: Final = "mesh-proxy"
API: Final = "admissionregistration.k8s.io/v1"
POLL_INTERVAL: Final = 0.5
SCRIPT: Final = "trap 'exit 0' TERM; echo proxy is up; sleep 3600 & wait"
Json = dict[str, Any]


class SidecarPosition(Enum):
    """Where meshes put it among a pod's init containers, the barrier being there already: the end of a JSON pointer."""

    FIRST = "0"
    LAST = "-"


async def known(scenario: Scenario) -> bool:
    """Whether API servers change pods by policies, which they do since 1.36."""
    listed = await scenario.kubectl("api-resources", f"--api-group={API.partition('/')[0]}", "--no-headers")
    return any({"mutatingadmissionpolicies", API} <= set(line.split()) for line in listed.splitlines())


@asynccontextmanager
async def injecting(scenario: Scenario, place: SidecarPosition) -> AsyncIterator[None]:
    """Meanwhile each new pod of the namespace gets the sidecar there."""
    meta = {"name": scenario.namespace}
    binding = {"policyName": scenario.namespace}
    policies = [
        {"apiVersion": API, "kind": "MutatingAdmissionPolicy", "metadata": meta, "spec": _policy(scenario, place)},
        {"apiVersion": API, "kind": "MutatingAdmissionPolicyBinding", "metadata": meta, "spec": binding},
    ]
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": policies})
    await scenario.kubectl("apply", "-f", "-", stdin=manifest)
    try:
        await _until_in_force(scenario)
        yield
    finally:
        await scenario.kubectl("delete", "-f", "-", stdin=manifest)


def _policy(scenario: Scenario, place: SidecarPosition) -> Json:
    command = ", ".join(map(json.dumps, ("sh", "-c", SCRIPT)))
    image = json.dumps(scenario.image)
    fields = f'name: "{PROXY}", image: {image}, command: [{command}], restartPolicy: "Always"'
    container = f"Object.spec.initContainers{{{fields}}}"
    patch = f'JSONPatch{{op: "add", path: "/spec/initContainers/{place.value}", value: {container}}}'
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{patch}]"}}
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    return {
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scenario.namespace}},
            "resourceRules": [pods],
        },
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [mutation],
    }


async def _until_in_force(scenario: Scenario) -> None:
    """A dry run tells; API servers read policies now and then."""
    spec = {"initContainers": [manifests.container("any", scenario.image)], "containers": [manifests.container()]}
    pod = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": spec})
    said = ""
    try:
        async with asyncio.timeout(TIMEOUT):
            while PROXY not in said:
                said = await scenario.kubectl("create", "--dry-run=server", "--output=json", "-f", "-", stdin=pod)
                await asyncio.sleep(POLL_INTERVAL)
    except TimeoutError:
        raise commands.CommandFailed(f"pods get no sidecar: {said}") from None
