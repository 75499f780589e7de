"""A main image that one node lacks: with prefetch-images its pod does not count until it is there."""

import asyncio

from e2e import gangs, images, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names


async def test_a_pod_counts_when_its_main_images_are_on_its_node(world: Scenario, wires: Nodes) -> None:
    here, there = (await wires.workers())[:2]
    kind = world.ground.kind
    image = await asyncio.to_thread(images.other_tag, world.namespace)
    try:
        await asyncio.to_thread(images.load_onto, kind, here, image)
        jobs = [one(world, name, image, node) for name, node in (("near", here), ("far", there))]
        await world.apply(gangs.gang(*jobs, timeout=300, annotations={names.PREFETCH_IMAGES: "true"}))
        await world.until_held(1)
        await world.until_condition(names.REASON_WAITING, "1/2 pods started; missing: 1 pod: ImagePull")
        assert await world.verdict() is None
        await asyncio.to_thread(images.load_onto, kind, there, image)
        await world.until_jobset(predicates.completed)
    finally:
        await asyncio.to_thread(images.forget, image)
    await world.check_order(2)
    for pod in world.pods.all():
        ended = predicates.init_status(pod, f"{names.PREFETCH_CONTAINER}-2")["state"]["terminated"]
        assert ended["exitCode"] == 0
        assert len(pod["status"]["containerStatuses"]) == 2


def one(world: Scenario, name: str, image: str, node: str) -> predicates.Json:
    """A Job of one pod with two main containers: one of an image with a shell, the other without."""
    pod = {"nodeSelector": {"kubernetes.io/hostname": node}}
    job = gangs.workers(world.image, name=name, jobs=1, pods=1, pod=pod, work=gangs.SHORT_WORK)
    containers = job["template"]["spec"]["template"]["spec"]["containers"]
    containers.append({"name": "strange", "image": image})
    return job
