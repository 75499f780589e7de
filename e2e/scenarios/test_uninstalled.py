"""`helm uninstall`: gangs end by their own limit or can be taken away, pods of groups are ungated, and JobSets run as
if we had never been there.

After all other scenarios, for jobset-gate is gone then.
"""

import asyncio
import re
from typing import Any, Final

import pytest

from e2e import admission_load, commands, gangs, groups, predicates
from e2e.extended_resource import ExtendedResource
from e2e.nodes import Nodes
from e2e.release_admin import ReleaseAdmin
from e2e.scenario import Scenario
from e2e.timeouts import TIMEOUT
from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS

pytestmark = [pytest.mark.alone, pytest.mark.last]
GATE_TIMEOUT: Final = 20
GRACE: Final = 5
Json = dict[str, Any]


async def test_nothing_is_left_that_blocks(scenario: Scenario, nodes: Nodes, release_admin: ReleaseAdmin) -> None:
    await release_admin.apply(changes={"barrier": {"graceSeconds": GRACE}})
    async with nodes.extended_resource(scenario.namespace) as extended:
        await scenario.apply(waiting(scenario, extended, "lasting", None))
        await scenario.until_held(1)
        gate_of_lasting = f"configmap/{names.config_map_name('lasting')}"
        await scenario.kubectl("wait", "--for=create", gate_of_lasting, "--timeout=60s")
        # Nobody gives the second one its timeout, whatever time uninstalling takes.
        await release_admin.no_controllers()
        await scenario.apply(waiting(scenario, extended, "gang", GATE_TIMEOUT))
        await scenario.until_held(2)
        await release_admin.remove()
        assert await release_admin.left_behind(TIMEOUT) == set()

        # What we put into JobSets does not keep anybody from stopping and deleting them,
        body = {"spec": {"suspend": True}}
        await scenario.client.patch(JOBSETS, "lasting", scenario.namespace, body=body, patch=PatchType.MERGE)
        await scenario.until(lambda pods: not [pod for pod in pods if predicates.alive(pod) and of(pod) == "lasting"])
        await scenario.kubectl("delete", "jobset", "lasting", "--wait")
        await scenario.kubectl("wait", "--for=delete", gate_of_lasting, "--timeout=60s")
        # nor from making new ones, with the field that stays in the CRD;
        assert await release_admin.field_in_crd()
        assert not has_any_barrier(await admission_load.admit_once(scenario))
        free = gangs.gang(gangs.workers(scenario.image, jobs=1, pods=1), timeout=300)
        await scenario.apply({**free, "metadata": {**free["metadata"], "name": "free"}})
        await scenario.until_running(1)
        # and who is still waiting gives up in time.
        pods = await scenario.until(lambda pods: any(gave_up(pod) for pod in pods))
        (ended,) = [predicates.barrier_end(pod) for pod in pods if gave_up(pod)]
        assert ended["exitCode"] == names.EXIT_TIMED_OUT
        assert f"no verdict from the jobset-gate controller within {GATE_TIMEOUT + GRACE}s" in ended["message"]
        await scenario.until_jobset(predicates.failed)
    found = (await scenario.client.list(CONFIGMAPS, scenario.namespace))["items"]
    assert {predicates.name_of(one) for one in found} <= {"kube-root-ca.crt", names.config_map_name("gang")}


async def test_held_pods_of_a_group_run_and_the_field_goes_where_that_is_requested(
    scenario: Scenario, release_admin: ReleaseAdmin
) -> None:
    await release_admin.install({"crds": {"keep": False}})
    assert await release_admin.field_in_crd()
    await scenario.apply(groups.job(scenario.image, 2, metadata=groups.labelled(3)))
    await groups.until_held(scenario, 2)
    await release_admin.remove()
    await scenario.until_running(2)
    assert await release_admin.left_behind(TIMEOUT) == set()
    # A new pod is neither held nor sent to a webhook.
    late = groups.job(scenario.image, 1, metadata=groups.labelled(3))
    await scenario.apply({**late, "metadata": {"name": "late"}})
    await scenario.until_running(3)
    assert not await release_admin.field_in_crd()
    gang = gangs.gang(gangs.workers(scenario.image, jobs=1, pods=1))
    assert re.search(f'unknown field "(spec.)?{names.CONFIG_FIELD}"', await refusal(scenario, gang))
    del gang["spec"][names.CONFIG_FIELD]
    await scenario.apply(gang)
    await scenario.until_running(4)


def waiting(scenario: Scenario, extended: ExtendedResource, name: str, timeout: int | None) -> Json:
    """One of its two pods is held, the other has no node."""
    here = gangs.workers(scenario.image, name="here", jobs=1, pods=1)
    nowhere = gangs.workers(scenario.image, name="nowhere", jobs=1, pods=1, resources=extended.request)
    gang = gangs.gang(here, nowhere, timeout=timeout)
    return {**gang, "metadata": {**gang["metadata"], "name": name}}


def gave_up(pod: Json) -> bool:
    """The one that was not stopped, its barrier having ended."""
    return of(pod) == "gang" and bool(predicates.barrier_end(pod))


async def refusal(scenario: Scenario, gang: Json) -> str:
    """The API server's refusal, once there is one: it forgets a field a moment after its CRD."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            try:
                await scenario.apply(gang, dry_run=True)
            except commands.CommandFailed as refused:
                return str(refused)


def of(pod: Json) -> str:
    return str(pod["metadata"]["labels"][names.JS_NAME])


def has_any_barrier(jobset: Json) -> bool:
    return names.BARRIER_CONTAINER in str(jobset)
