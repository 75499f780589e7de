"""Three gangs that a user has broken, each cause found by one command, as scheduler, kubelet or quota give it."""

from e2e import gangs, plugin
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import Resource

ABSENT = "localhost/no-such-image:1"
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")


async def test_a_wrong_image_is_explained_in_the_kubelets_words(scenario: Scenario) -> None:
    healthy = gangs.workers(scenario.image, jobs=1, pods=2)
    broken = gangs.workers(ABSENT, name="broken", jobs=1, pods=1)
    await scenario.apply(gangs.gang(healthy, broken, timeout=300, annotations={names.PREFETCH_IMAGES: "true"}))
    await scenario.until_held(2)
    await plugin.first_lines_of_why(scenario, "gang", "2/3 pods started", "ImagePull", "broken-0/0", ABSENT)


async def test_too_few_nodes_are_explained_in_the_schedulers_words(scenario: Scenario, nodes: Nodes) -> None:
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(node, 1)
        await scenario.apply(
            gangs.gang(gangs.workers(scenario.image, jobs=1, pods=3, resources=extended.request), timeout=300)
        )
        await scenario.until_held(1)
        lacks = f"Insufficient {next(iter(extended.request['limits']))}"
        await plugin.first_lines_of_why(scenario, "gang", "1/3 pods started", "2 pods", "nodes are available", lacks)


async def test_a_quota_is_explained_in_its_own_words(scenario: Scenario) -> None:
    await limit(scenario.client, scenario.namespace, pods=2)
    await scenario.apply(gangs.gang(gangs.workers(scenario.image, jobs=1, pods=3), timeout=300))
    await scenario.until_held(2)
    words = "exceeded quota: two-pods, requested: pods=1, used: pods=2, limited: pods=2"
    await plugin.first_lines_of_why(scenario, "gang", "2/3 pods started", "QuotaDenied", words)


async def limit(client: Client, namespace: str, pods: int) -> None:
    body = {"metadata": {"name": "two-pods", "namespace": namespace}, "spec": {"hard": {"pods": str(pods)}}}
    await client.create(QUOTAS, body)
