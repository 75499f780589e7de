"""Pods of any controller as a gang, by a label and an annotation: start, replacement, next attempt, timeout."""

from typing import Any, Final

import pytest

from e2e import example_overlays, example_programs, gangs, predicates
from e2e.controllers import InstalledControllers
from e2e.example_overlays import Overlay
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from e2e.scenarios.test_jobs import LIMIT, room_for
from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import CONFIGMAPS, PODS

GROUP: Final = "ring"
PODS_OF_GROUP: Final = f"--selector={names.START_GROUP}={GROUP}"
STARTED: Final = "jsonpath={.metadata.annotations.%s}=True" % names.GROUP_STARTED.replace(".", r"\.")  # noqa: UP031

Json = dict[str, Any]


def template(scenario: Scenario, resources: Json, restart: str, notes: Json) -> Json:
    """Of four pods that wait for each other."""
    return {
        "metadata": {
            "labels": {"app": "gang", names.START_GROUP: GROUP},
            "annotations": {names.START_SIZE: "4"} | notes,
        },
        "spec": {
            "restartPolicy": restart,
            "terminationGracePeriodSeconds": 1,
            "containers": [gangs.main(scenario.image, resources=resources)],
        },
    }


def stateful_set(scenario: Scenario, resources: Json) -> Json:
    spec = {
        "serviceName": "gang",
        "podManagementPolicy": "Parallel",
        "replicas": 4,
        "selector": {"matchLabels": {"app": "gang"}},
        "template": template(scenario, resources, "Always", {}),
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "gang"}, "spec": spec}


async def until_state(scenario: Scenario, attempt: int, reason: str, text: str = "") -> None:
    """Until the group's ConfigMap is of that attempt, and its state has that reason and contains that text."""

    def matches(one: Json) -> bool:
        state = (one["metadata"].get("annotations") or {}).get(names.GANG_STATE, "")
        present = (one.get("data") or {}).get(names.KEY_ATTEMPT) == str(attempt)
        return present and state.startswith(f"{reason}: ") and text in state

    (found,) = await scenario.until_any(CONFIGMAPS, matches)
    assert found["metadata"]["labels"][names.START_GROUP] == GROUP


async def test_its_pods_start_together_one_is_replaced_and_then_all(scenario: Scenario, nodes: Nodes) -> None:
    async with room_for(scenario, nodes, 3) as (extended, node):
        await scenario.apply(stateful_set(scenario, extended.request))
        await scenario.until_held(3)
        await until_state(scenario, 0, names.REASON_WAITING, "3/4 pods started")
        await extended.set_capacity(node, 4)
        await scenario.until_running(4)
        await scenario.kubectl("wait", "configmap", PODS_OF_GROUP, f"--for={STARTED}", "--timeout=60s")
        await scenario.check_order(4, PODS_OF_GROUP)

        first = {pod["metadata"]["uid"] for pod in await scenario.until_running(4)}
        await scenario.delete_pod("gang-1")
        await scenario.until(
            lambda pods: sum(predicates.runs(one) and one["metadata"]["uid"] not in first for one in pods) == 1
        )
        await until_state(scenario, 0, names.REASON_STARTED)

        await extended.set_capacity(node, 3)
        await scenario.kubectl("delete", "pods", PODS_OF_GROUP, "--wait=false")
        await scenario.until_held(3)
        await until_state(scenario, 1, names.REASON_WAITING, "3/4 pods started")
        await extended.set_capacity(node, 4)
        await scenario.until_running(4)
        await scenario.check_order(4, PODS_OF_GROUP)
        await until_state(scenario, 1, names.REASON_STARTED)


async def test_at_the_timeout_its_pods_fail_together_and_the_missing_one_is_named(
    scenario: Scenario, nodes: Nodes
) -> None:
    async with room_for(scenario, nodes, 3) as (extended, _):
        notes = {names.CONFIG: f'{{"{names.TIMEOUT_FIELD}": {LIMIT}}}'}
        pods = template(scenario, extended.request, "Never", notes)
        spec = {"completions": 4, "parallelism": 4, "backoffLimit": 0, "template": pods}
        await scenario.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "gang"}, "spec": spec})
        await scenario.until_held(3)
        await until_state(scenario, 0, names.REASON_TIMED_OUT)
        await scenario.until(lambda _: len(scenario.ends) >= 3)
        (late,) = set(scenario.seen) - set(scenario.ends)
        for end in scenario.ends.values():
            assert end["exitCode"] == names.EXIT_TIMED_OUT
            assert "3/4 pods started; missing: 1 pod: Unscheduled" in end["message"]
            assert late in end["message"]


@pytest.mark.alone
async def test_a_pod_whose_init_containers_run_again_passes_without_a_controller(
    scenario: Scenario, kind_nodes: Nodes, controllers: InstalledControllers
) -> None:
    """A node that reboots does the same: the kubelet makes a new sandbox, and runs all containers of the pod again."""
    async with room_for(scenario, kind_nodes, 4) as (extended, node):
        await scenario.apply(stateful_set(scenario, extended.request))
        pod = (await scenario.until_running(4))[0]
        name, before = predicates.name_of(pod), predicates.init_status(pod, names.BARRIER_CONTAINER)["containerID"]
        async with controllers.gone():
            body = {"metadata": {"annotations": {names.VERDICT: None}}}
            await scenario.client.patch(PODS, name, scenario.namespace, body=body, patch=PatchType.MERGE)
            label = f"--label=io.kubernetes.pod.uid={pod['metadata']['uid']}"
            sandbox = await kind_nodes.run(node, "crictl", "pods", "--quiet", "--state=ready", label)
            await kind_nodes.run(node, "crictl", "stopp", sandbox.strip())

            def passed_again(one: Json) -> bool:
                barrier = predicates.init_status(one, names.BARRIER_CONTAINER)
                again = barrier.get("containerID") not in (None, before) and predicates.barrier_end(one)
                return predicates.name_of(one) == name and bool(again) and predicates.runs(one)

            await scenario.until(lambda pods: any(map(passed_again, pods)))


@pytest.mark.parametrize("example", example_programs.START_GROUPS)
async def test_the_pods_of_the_example_meet(scenario: Scenario, nodes: Nodes, example: str) -> None:
    play = example_programs.START_GROUPS[example]
    near, far = (await nodes.workers())[:2]
    async with nodes.extended_resource(scenario.namespace) as extended:
        overlay = Overlay(scenario.environment.image, scenario.namespace, extended.request, play.commands)
        made = [overlay.over(one) for one in example_overlays.documents(example)]
        many = example_overlays.with_extended_resource(made)
        await extended.set_capacity(near, many - 1)
        await scenario.apply(*made)
        await scenario.until_held(many - 1)
        await extended.set_capacity(far, 1)
        await scenario.until(lambda pods: sum(map(has_met, pods)) == many)


def has_met(pod: Json) -> bool:
    """Its rendezvous has ended well. The kubelet starts it again: pods of a StatefulSet never complete."""
    states = [
        status.get(which) or {}
        for status in pod["status"].get("containerStatuses") or ()
        for which in ("state", "lastState")
    ]
    return any((state.get("terminated") or {}).get("exitCode") == 0 for state in states)
