"""`helm upgrade`, from an older package and to other values: what waits goes on waiting, and nobody is refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from e2e import admission_load, gangs, gate, helm
from e2e.nodes import Nodes
from e2e.release_admin import ReleaseAdmin
from e2e.scenario import Scenario
from jobset_gate import names

pytestmark = pytest.mark.alone
OLDER: Final = "0.0.1"
LIMIT: Final = 777
CHANGES: Final = {"webhook": {"replicaCount": 3}, "barrier": {"maxWaitSeconds": LIMIT}}
Json = dict[str, Any]


@pytest.fixture
def older() -> Iterator[Path]:
    """The chart as a package of an older version."""
    with helm.packaged(OLDER) as package:
        yield package


async def test_it_works_on_through_upgrades(world: Scenario, nodes: Nodes, operator: ReleaseAdmin, older: Path) -> None:
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(world.namespace) as seats:
        await seats.set_capacity(node, 3)
        await world.apply(gangs.gang(gangs.workers(world.image, jobs=2, pods=2, resources=seats.request), timeout=300))
        await world.until_held(3)
        async with admission_load.admission_load(world) as tally:
            await operator.apply(older)
            assert (await webhook(operator))["metadata"]["labels"]["helm.sh/chart"] == f"jobset-gate-{OLDER}"
            await operator.apply(changes=CHANGES)
            assert (await webhook(operator))["status"]["readyReplicas"] == 3
            assert limit(await admission_load.admit_once(world)) == str(LIMIT)
            await operator.apply()
        print(f"during three upgrades: {tally}")
        tally.check()
        assert limit(await admission_load.admit_once(world)) == ""
        # Held by the first, released by the last.
        await world.until_held(3)
        await seats.set_capacity(node, 4)
        await world.until_running(4)
        await world.check_order(4)
        await world.until_condition(names.REASON_STARTED)


async def test_helm_test_passes(operator: ReleaseAdmin) -> None:
    assert "Succeeded" in await operator.test()


async def webhook(operator: ReleaseAdmin) -> Json:
    found: Json = json.loads(await operator.kubectl("get", "deployment", gate.WEBHOOK, "--output=json"))
    return found


def limit(jobset: Json) -> str:
    """The one that its barriers have of their own, "" if none."""
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    (barrier,) = [one for one in pod["initContainers"] if one["name"] == names.BARRIER_CONTAINER]
    return next((str(one.get("value", "")) for one in barrier["env"] if one["name"] == names.ENV_LIMIT), "")
