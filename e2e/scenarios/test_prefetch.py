"""A main image that one node lacks: with prefetch-images its pod does not count until it is there."""

import asyncio

from e2e import gangs, images, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names


async def test_a_pod_counts_when_its_main_images_are_on_its_node(scenario: Scenario, kind_nodes: Nodes) -> None:
    here, there = (await kind_nodes.workers())[:2]
    kind = scenario.environment.kind
    image = await asyncio.to_thread(images.other_tag, scenario.namespace)
    try:
        await asyncio.to_thread(images.load_onto, kind, here, image)
        jobs = [one(scenario, name, image, node) for name, node in (("near", here), ("far", there))]
        await scenario.apply(gangs.gang(*jobs, timeout=300, annotations={names.PREFETCH_IMAGES: "true"}))
        await scenario.until_held(1)
        await scenario.until_condition(names.REASON_WAITING, "1/2 pods started; missing: 1 pod: ImagePull")
        assert await scenario.verdict() is None
        await asyncio.to_thread(images.load_onto, kind, there, image)
        await scenario.until_jobset(predicates.completed)
    finally:
        await asyncio.to_thread(images.forget, image)
    await scenario.check_order(2)
    for pod in scenario.pods.all():
        ended = predicates.init_status(pod, f"{names.PREFETCH_CONTAINER}-2")["state"]["terminated"]
        assert ended["exitCode"] == 0
        assert len(pod["status"]["containerStatuses"]) == 2


def one(scenario: Scenario, name: str, image: str, node: str) -> predicates.Json:
    """A Job of one pod with two main containers: one of an image with a shell, the other without."""
    pod = {"nodeSelector": {"kubernetes.io/hostname": node}}
    job = gangs.workers(scenario.image, name=name, jobs=1, pods=1, pod=pod, work=gangs.SHORT_WORK)
    containers = job["template"]["spec"]["template"]["spec"]["containers"]
    containers.append({"name": "strange", "image": image})
    return job
