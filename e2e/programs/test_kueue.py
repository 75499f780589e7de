"""Kueue: a gang of PyTorch is preempted by another one while it waits at the gate, and waits there again afterwards."""

import json
import time
from collections.abc import Callable

from e2e import example_overlays, predicates
from e2e.nodes import Nodes
from e2e.programs import kueue, real_images
from e2e.programs.program import Json, lines_of, message, save
from e2e.scenario import Scenario
from jobset_gate import names
from jobset_gate.kube.resources import JOBSETS

EXAMPLE = "kueue.yaml"
FIRST, URGENT = "queued", "urgent"
PODS = 3
PRIORITY = "kueue.x-k8s.io/priority-class"
MET = r"^rank \d of 3: all are here$"


async def test_a_preempted_gang_waits_at_a_closed_gate_when_kueue_admits_it_again(
    scenario: Scenario, nodes: Nodes
) -> None:
    began, course = time.monotonic(), list[str]()

    def note(text: str) -> None:
        course.append(f"{time.monotonic() - began:5.0f} s  {text}")

    near, far = (await nodes.workers())[:2]
    async with nodes.extended_resource(scenario.namespace) as extended:
        high = await kueue.make_queue(scenario, extended.request, PODS)
        await extended.set_capacity(near, PODS - 1)
        await scenario.apply(gang(FIRST, extended.request))
        await scenario.until(held_of(FIRST, PODS - 1))
        note(f"{FIRST} is admitted: 2 of its 3 pods wait in their barrier, the third has no node")
        await scenario.apply(gang(URGENT, extended.request, priority=high))
        await scenario.until(held_of(URGENT, PODS - 1))
        assert not any(of(FIRST, pod) for pod in scenario.pods.all() if predicates.alive(pod))
        preempted = await kueue.preempted(scenario)
        assert preempted
        note(f"{FIRST} is preempted and has no pods; 2 of {URGENT}'s wait in their barrier")
        await extended.set_capacity(far, 1)
        await scenario.until(lambda pods: sum(predicates.has_run(pod) for pod in pods if of(URGENT, pod)) == PODS)
        await extended.set_capacity(far, 0)
        note(f"the third one has a node: all 3 of {URGENT} run; that node takes no other pod after it")
        await scenario.until_any(JOBSETS, ended(URGENT))
        note(f"{URGENT} has completed")
        await scenario.until(held_of(FIRST, PODS - 1))
        (waiting,) = await scenario.until_any(
            JOBSETS, lambda jobset: predicates.name_of(jobset) == FIRST and "2/3" in message(jobset)
        )
        note(f"{FIRST} is admitted again and waits at a closed gate: {message(waiting)}")
        await extended.set_capacity(far, 1)
        await scenario.until_any(JOBSETS, ended(FIRST))
        note(f"the third one has a node: {FIRST} has completed")
        met = await lines_of(scenario, MET)
    assert len(met) == PODS, met
    save(scenario.environment.reports, "Kueue", {"course": course, "preempted": preempted, "met": met})


def gang(name: str, request: Json, priority: str = "") -> Json:
    """The example under that name; image and resources are overlaid."""
    (jobset,) = json.loads(json.dumps(example_overlays.documents(EXAMPLE)).replace(FIRST, name))
    if priority:
        jobset["metadata"]["labels"][PRIORITY] = priority
    for _, job in example_overlays.jobs(jobset):
        for container in job["template"]["spec"]["containers"]:
            container["image"], container["resources"] = real_images.PYTHON, request
    return dict(jobset)


def of(name: str, pod: Json) -> bool:
    return bool(pod["metadata"]["labels"].get(names.JS_NAME) == name)


def held_of(name: str, count: int) -> Callable[[list[Json]], bool]:
    return lambda pods: sum(predicates.held(pod) for pod in pods if of(name, pod)) == count


def ended(name: str) -> Callable[[Json], bool]:
    """Well; a gang that fails is waited for in vain."""
    return lambda jobset: predicates.name_of(jobset) == name and predicates.completed(jobset)
