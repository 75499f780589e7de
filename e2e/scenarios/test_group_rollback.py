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


async def test_no_job_fails(scenario: Scenario, nodes: Nodes) -> None:
    """One pod on each node, and one more. Anti-affinity is not modelled, so the group is tried all the same."""
    many = len(await nodes.workers()) + 1
    spec = {"podFailurePolicy": FAIL_JOB}
    job = groups.job(scenario.image, many, work=groups.ENDS_BADLY, pod={"affinity": apart()}, **spec)
    await scenario.apply(groups.pod_group(many, wait=LIMIT), job)
    first = await scenario.until_running(many - 1)
    before = {pod["metadata"]["uid"] for pod in first}
    await groups.until_reported(scenario, names.REASON_ROLLED_BACK)
    # The pods that ran have exited with a code that the policy forbids, and their replacements are held.
    await scenario.until(lambda pods: not before & uids(pods) and sum(map(groups.held, pods)) == many)
    found = await scenario.client.get(JOBS, groups.NAME, scenario.namespace)
    assert await groups.conditions(scenario) & {"Failed", "FailureTarget"} == set()
    assert not found["status"].get("failed")
    assert not found["spec"].get("suspend")


def apart() -> predicates.Json:
    """No two of the group on one node."""
    alike = {"matchLabels": {names.PLUGINS_NAME: groups.NAME}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": alike}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def uids(pods: list[predicates.Json]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}
