"""Kueue in the cluster, from the manifests of KUEUE_MANIFESTS, and a queue whose quota is one gang of a scenario."""

import json
import os
import time
from typing import Any, Final

from e2e import commands, jobset
from e2e.cluster import E2eCluster
from e2e.scenario import Scenario
from e2e.timeouts import TIMEOUT

MANIFESTS: Final = os.environ.get("KUEUE_MANIFESTS", "")
NAMESPACE: Final = "kueue-system"
API: Final = "kueue.x-k8s.io/v1beta2"
QUEUE: Final = "team"
"""The LocalQueue that examples/kueue.yaml names."""
POLL_INTERVAL: Final = 2.0
Json = dict[str, Any]


def install(cluster: E2eCluster) -> None:
    """On any node, for its requests are large. Returns when it answers. Raises commands.CommandFailed."""
    jobset.apply_release(cluster, MANIFESTS, NAMESPACE, steady_node={})
    probe, end = json.dumps(_object("ResourceFlavor", "probe", spec={})), time.monotonic() + TIMEOUT
    while True:
        try:
            cluster.kubectl("apply", "--dry-run=server", "-f", "-", stdin=probe)
        except commands.CommandFailed:
            # A ready Deployment is not yet known to all who call its webhook.
            if time.monotonic() > end:
                raise
            time.sleep(POLL_INTERVAL)
        else:
            return


async def make_queue(scenario: Scenario, request: Json, quota: int) -> str:
    """A queue whose quota is so many of the extended resource. Returns a priority class that preempts all others."""
    name, (extended,) = scenario.namespace, request["requests"]
    quotas = [
        {"name": one, "nominalQuota": much} for one, much in (("cpu", "64"), ("memory", "64Gi"), (extended, quota))
    ]
    group = {"coveredResources": [one["name"] for one in quotas], "flavors": [{"name": name, "resources": quotas}]}
    spec = {"namespaceSelector": {}, "resourceGroups": [group], "preemption": {"withinClusterQueue": "LowerPriority"}}
    made = [
        _object("ResourceFlavor", name, spec={}),
        _object("ClusterQueue", name, spec=spec),
        _object("LocalQueue", QUEUE, spec={"clusterQueue": name}),
        _object("WorkloadPriorityClass", name, value=1000, description="for a scenario"),
    ]
    everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
    await scenario.kubectl("apply", "-f", "-", stdin=everything)
    return name


async def preempted(scenario: Scenario) -> str:
    """What Kueue's Workloads say of a preemption, "" if nothing."""
    found = json.loads(await scenario.kubectl("get", "workloads", "--output=json"))["items"]
    conditions = (one for it in found for one in (it.get("status") or {}).get("conditions") or ())
    return next((str(one["message"]) for one in conditions if one["type"] == "Preempted"), "")


def _object(kind: str, name: str, **fields: Any) -> Json:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, **fields}
