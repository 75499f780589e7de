"""A pod whose containers ask for what they are limited to stays Guaranteed with the barrier in it."""

from e2e import gangs
from e2e.scenario import Scenario
from jobset_gate import names

AMOUNTS = {"cpu": "20m", "memory": "32Mi"}


async def test_the_quality_of_service_class_is_kept(scenario: Scenario) -> None:
    workers = gangs.workers(scenario.image, jobs=1, pods=2, resources={"requests": AMOUNTS, "limits": AMOUNTS})
    await scenario.apply(gangs.gang(workers))
    for pod in await scenario.until_running(2):
        assert pod["status"]["qosClass"] == "Guaranteed"
        assert [one["name"] for one in pod["spec"]["initContainers"]] == [names.BARRIER_CONTAINER]
