"""The user's own init containers are done and native sidecars are up before a pod counts; then the gang is released."""

from itertools import pairwise

from e2e import gangs, logs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names
from jobset_gate_demo.fake import manifests

SIDECAR = "trap 'exit 0' TERM; echo sidecar is up; touch /up; sleep 3600 & wait"
UP = {"exec": {"command": ["test", "-e", "/up"]}, "periodSeconds": 1, "failureThreshold": 120}
"""Without it a sidecar that has not spoken yet counts as started."""


async def test_the_barrier_comes_after_all_of_the_users_own(scenario: Scenario, nodes: Nodes) -> None:
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(node, 1)
        workers = gangs.workers(scenario.image, jobs=1, pods=2, resources=extended.request, work=gangs.SHORT_WORK)
        workers["template"]["spec"]["template"]["spec"]["initContainers"] = [
            manifests.container("setup", scenario.image, command=["sh", "-c", "echo set up; sleep 1"]),
            manifests.container(
                "proxy", scenario.image, command=["sh", "-c", SIDECAR], restartPolicy="Always", startupProbe=UP
            ),
        ]
        await scenario.apply(gangs.gang(workers))
        (held,) = [pod for pod in await scenario.until_held(1) if predicates.held(pod)]
        order = [one["name"] for one in held["spec"]["initContainers"]]
        assert order == ["setup", "proxy", names.BARRIER_CONTAINER]
        assert "running" in predicates.init_status(held, "proxy")["state"]
        assert predicates.init_status(held, "setup")["state"]["terminated"]["exitCode"] == 0
        await extended.set_capacity(node, 2)
        # The sidecars do not keep the pods from completing.
        await scenario.until_jobset(predicates.completed)
        lines = await scenario.logs()
        logs.check_all_started_before_any_ran(lines, 2)
        steps = [logs.first_lines(lines, name) for name in (*order, "main")]
        for earlier, later in pairwise(steps):
            assert all(earlier[pod] < later[pod] for pod in later)
