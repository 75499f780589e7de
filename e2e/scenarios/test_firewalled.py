"""A strict namespace: Pod Security restricted, a quota and limits that just fit, and no way to the gate service."""

from contextlib import AsyncExitStack

import pytest

from e2e import facts, gangs
from e2e.nodes import Nodes
from e2e.world import World
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
            "requests.cpu": f"{20 * PODS}m",
            "limits.cpu": f"{20 * PODS}m",
            "requests.memory": f"{32 * PODS}Mi",
            "limits.memory": f"{32 * PODS}Mi",
        }
    },
}
LIMITS = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "just-these"},
    "spec": {"limits": [{"type": "Container", "min": AMOUNTS, "max": AMOUNTS}]},
}
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}


async def test_a_gang_starts_where_nothing_is_allowed(world: World, wires: Nodes) -> None:
    await world.label_namespace({"pod-security.kubernetes.io/enforce": "restricted"})
    await world.apply(QUOTA, LIMITS)
    workers = gangs.workers(world.image, jobs=2, pods=2, resources={"requests": AMOUNTS, "limits": AMOUNTS})
    (container,) = workers["template"]["spec"]["template"]["spec"]["containers"]
    container["securityContext"] = RESTRICTED
    async with AsyncExitStack() as walls:
        for node in await wires.workers():
            await walls.enter_async_context(wires.no_stream(node))
        await world.apply(gangs.gang(workers, timeout=300))
        pods = await world.until_running(PODS)
        await world.check_order(PODS)
        assert all(names.VERDICT in pod["metadata"]["annotations"] for pod in pods)
        assert all(pod["status"]["qosClass"] == "Guaranteed" for pod in pods)
    assert not any(facts.failed(jobset) for jobset in [await world.jobset()])
