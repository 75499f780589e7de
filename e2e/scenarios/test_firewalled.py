"""A strict namespace: Pod Security restricted, quota and limits that just fit, a sidecar, no way to the gate service.

The NetworkPolicy says it, and where no network plugin enforces one (kind here), the nodes' firewalls do it.
"""

from contextlib import AsyncExitStack

import pytest

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names

pytestmark = pytest.mark.alone
AMOUNTS = {"cpu": "20m", "memory": "32Mi"}
PODS = 4
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "just-enough"},
    "spec": {
        "hard": {
            "pods": str(PODS),
            # A main container and its sidecar; what the barrier asks for is not added to that.
            "requests.cpu": f"{2 * 20 * PODS}m",
            "limits.cpu": f"{2 * 20 * PODS}m",
            "requests.memory": f"{2 * 32 * PODS}Mi",
            "limits.memory": f"{2 * 32 * PODS}Mi",
        }
    },
}
LIMITS = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "just-these"},
    "spec": {"limits": [{"type": "Container", "min": AMOUNTS, "max": AMOUNTS}]},
}
NO_NETWORK = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "default-deny"},
    "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
}
SIDECAR = "trap 'exit 0' TERM; sleep 3600 & wait"
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}


async def test_a_gang_starts_where_nothing_is_allowed(scenario: Scenario, kind_nodes: Nodes) -> None:
    await scenario.label_namespace({"pod-security.kubernetes.io/enforce": "restricted"})
    await scenario.apply(QUOTA, LIMITS, NO_NETWORK)
    amounts = {"requests": AMOUNTS, "limits": AMOUNTS}
    workers = gangs.workers(scenario.image, jobs=2, pods=2, resources=amounts)
    pod = workers["template"]["spec"]["template"]["spec"]
    sidecar = gangs.main(scenario.image, name="sidecar", work=SIDECAR, resources=amounts, restartPolicy="Always")
    pod["initContainers"] = [sidecar]
    for container in (*pod["containers"], *pod["initContainers"]):
        container["securityContext"] = RESTRICTED
    async with AsyncExitStack() as walls:
        for node in await kind_nodes.workers():
            await walls.enter_async_context(kind_nodes.no_stream(node))
        await scenario.apply(gangs.gang(workers, timeout=300))
        pods = await scenario.until_running(PODS)
        await scenario.check_order(PODS)
        assert all(names.VERDICT in pod["metadata"]["annotations"] for pod in pods)
        assert all(pod["status"]["qosClass"] == "Guaranteed" for pod in pods)
    assert not any(predicates.failed(jobset) for jobset in [await scenario.jobset()])
