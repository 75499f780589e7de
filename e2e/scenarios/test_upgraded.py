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


async def test_it_works_on_through_upgrades(
    scenario: Scenario, nodes: Nodes, release_admin: ReleaseAdmin, older: Path
) -> None:
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(node, 3)
        await scenario.apply(
            gangs.gang(gangs.workers(scenario.image, jobs=2, pods=2, resources=extended.request), timeout=300)
        )
        await scenario.until_held(3)
        async with admission_load.admission_load(scenario) as tally:
            await release_admin.apply(older)
            assert (await webhook(release_admin))["metadata"]["labels"]["helm.sh/chart"] == f"jobset-gate-{OLDER}"
            await release_admin.apply(changes=CHANGES)
            assert (await webhook(release_admin))["status"]["readyReplicas"] == 3
            assert limit(await admission_load.admit_once(scenario)) == str(LIMIT)
            await release_admin.apply()
        print(f"during three upgrades: {tally}")
        tally.check()
        assert limit(await admission_load.admit_once(scenario)) == ""
        # Held by the first, released by the last.
        await scenario.until_held(3)
        await extended.set_capacity(node, 4)
        await scenario.until_running(4)
        await scenario.check_order(4)
        await scenario.until_condition(names.REASON_STARTED)


async def test_helm_test_passes(release_admin: ReleaseAdmin) -> None:
    assert "Succeeded" in await release_admin.test()


async def webhook(release_admin: ReleaseAdmin) -> Json:
    found: Json = json.loads(await release_admin.kubectl("get", "deployment", gate.WEBHOOK, "--output=json"))
    return found


def limit(jobset: Json) -> str:
    """The one that its barriers have of their own, "" if none."""
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    (barrier,) = [one for one in pod["initContainers"] if one["name"] == names.BARRIER_CONTAINER]
    return next((str(one.get("value", "")) for one in barrier["env"] if one["name"] == names.ENV_LIMIT), "")
