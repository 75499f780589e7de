"""KEP-498's story 2 as in examples/, but smaller: the leader is killed while pods wait on its streams.

The standby takes over, the barriers find it, and it alone tells of the release.
"""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from e2e import gangs, predicates
from e2e.controllers import NO_PATCHES, InstalledControllers
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names

pytestmark = pytest.mark.alone
STORY: Final = Path(__file__).parents[2] / "examples" / "story-2.yaml"
PODS: Final = 2
"""Of each of the three Jobs of workers."""
BEFORE_A_SYNC: Final = 45.0
"""Seconds: a pod that has just started its barrier is looked at again after 60 at the earliest."""
Json = dict[str, Any]


async def test_the_standby_takes_over_and_open_streams_move_to_it(
    scenario: Scenario, nodes: Nodes, controllers: InstalledControllers
) -> None:
    node = (await nodes.workers())[0]
    async with controllers.running_with(NO_PATCHES), nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(node, 3 * PODS - 1)
        await scenario.apply(story(scenario.image, extended.request))
        await scenario.until(
            lambda pods: sum(map(predicates.held, pods)) == 3 * PODS - 1 and any(map(predicates.runs, pods))
        )
        await scenario.until_condition(names.REASON_WAITING, "5/6 pods started")
        leader = await controllers.until_led()
        (doomed,) = [pod for pod in await controllers.pods() if predicates.name_of(pod) == leader]
        await controllers.remove(doomed)
        await controllers.until_led(but=leader)
        await extended.set_capacity(node, 3 * PODS)
        await scenario.until_verdict()
        pods = await scenario.until_running(3 * PODS + 1, BEFORE_A_SYNC)
        assert not any(names.VERDICT in pod["metadata"]["annotations"] for pod in pods)
        await scenario.check_order(3 * PODS, f"--selector={names.JS_REPLICATED_JOB}=workers")
        await scenario.until_condition(names.REASON_STARTED)
        assert [reason for reason, _ in await scenario.events()] == [names.REASON_STARTED]


def story(image: str, extended: Json) -> Json:
    """The published manifest with fewer pods and images that are here; each worker requests the extended resource."""
    jobset: Json = yaml.safe_load(STORY.read_text(encoding="utf-8"))
    jobset["metadata"]["name"] = "gang"
    for job in jobset["spec"]["replicatedJobs"]:
        workers = job["name"] == "workers"
        spec = job["template"]["spec"]
        spec["parallelism"] = spec["completions"] = PODS if workers else 1
        spec["template"]["spec"]["containers"] = [gangs.main(image, resources=extended if workers else {})]
    return jobset
