"""A group that misses its limit is taken back, and its Job does not fail, whatever its pods say at their end."""

from typing import Any, Final

import pytest

from e2e import groups, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names
from jobset_gate.kube.resources import JOBS

pytestmark = pytest.mark.alone
"""It is tried though it is not known to fit, which is the turn of the first group in order on these nodes."""
LIMIT: Final = 20
FAIL_JOB: Final[dict[str, Any]] = {
    "rules": [{"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}]
}


async def test_no_job_fails(world: Scenario, nodes: Nodes) -> None:
    """One pod on each node, and one more. Anti-affinity is not reckoned with, so the group is tried all the same."""
    many = len(await nodes.workers()) + 1
    spec = {"podFailurePolicy": FAIL_JOB}
    job = groups.job(world.image, many, work=groups.ENDS_BADLY, pod={"affinity": apart()}, **spec)
    await world.apply(groups.pod_group(many, wait=LIMIT), job)
    first = await world.until_running(many - 1)
    before = {pod["metadata"]["uid"] for pod in first}
    await groups.until_reported(world, names.REASON_ROLLED_BACK)
    # Whoever ran has left, with an exit code that the policy forbids, and those who came for them are held.
    await world.until(lambda pods: not before & uids(pods) and sum(map(groups.held, pods)) == many)
    found = await world.client.get(JOBS, groups.NAME, world.namespace)
    assert await groups.conditions(world) & {"Failed", "FailureTarget"} == set()
    assert not found["status"].get("failed")
    assert not found["spec"].get("suspend")


def apart() -> predicates.Json:
    """No two of the group on one node."""
    alike = {"matchLabels": {names.PLUGINS_NAME: groups.NAME}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": alike}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def uids(pods: list[predicates.Json]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}
