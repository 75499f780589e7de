"""examples/kueue.yaml, Kueue being simulated: suspended, then resumed with a flavor's node selector and tolerations."""

from collections.abc import Callable

from e2e import conflict_retry, example_overlays, example_programs, predicates
from e2e.example_overlays import Overlay
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate.kube.resources import JOBSETS, NODES
from jobset_gate_demo.fake.objects import Json

EXAMPLE = "kueue.yaml"


async def test_its_pods_meet_on_the_nodes_of_the_flavor(
    scenario: Scenario, nodes: Nodes, say: Callable[[str], None]
) -> None:
    node = await flavored(scenario, nodes)
    async with nodes.extended_resource(scenario.namespace) as extended:
        overlay = Overlay(
            scenario.environment.image, scenario.namespace, extended.request, example_programs.KUEUE[EXAMPLE].commands
        )
        made = [overlay.over(one) for one in example_overlays.documents(EXAMPLE)]
        many = example_overlays.with_extended_resource(made)
        await extended.set_capacity(predicates.name_of(node), many - 1)
        await scenario.apply(*made)
        await scenario.until_jobset(lambda jobset: predicates.condition(jobset, "Suspended").get("status") == "True")
        assert scenario.pods.all() == []
        await admit(scenario, predicates.name_of(made[-1]), node)
        held = await scenario.until_held(many - 1)
        assert {pod["spec"]["nodeName"] for pod in held if predicates.held(pod)} == {predicates.name_of(node)}
        await extended.set_capacity(predicates.name_of(node), many)
        jobset = await scenario.until_jobset(lambda jobset: predicates.completed(jobset) or predicates.failed(jobset))
    assert predicates.completed(jobset), jobset["status"]
    say(f"examples/{EXAMPLE}: {many} pods have met; {example_overlays.PRINTED}; Kueue was played")


async def flavored(scenario: Scenario, nodes: Nodes) -> Json:
    """A node that pods reach by a selector and tolerations alone, where there is one with a taint for good."""
    usual = (await nodes.workers())[0]
    all_ = (await scenario.client.list(NODES))["items"]
    tainted = [node for node in all_ if node["spec"].get("taints") and not any(map(passing, node["spec"]["taints"]))]
    return dict((tainted or [node for node in all_ if predicates.name_of(node) == usual])[0])


def passing(taint: Json) -> bool:
    """Kubernetes itself gives it to a node that is not well, and takes it off."""
    return str(taint["key"]).startswith("node.kubernetes.io/")


async def admit(scenario: Scenario, name: str, node: Json) -> None:
    """In one update, as Kueue does it: resumed, with what the flavor of each set of pods says.

    Again when JobSet's controller or ours has written meanwhile, which the JobSet's being new makes likely.
    """

    def resume(jobset: Json) -> None:
        jobset["spec"]["suspend"] = False
        for job in jobset["spec"]["replicatedJobs"]:
            pod = job["template"]["spec"]["template"]["spec"]
            pod["nodeSelector"] = {"kubernetes.io/hostname": predicates.name_of(node)}
            taints = node["spec"].get("taints") or ()
            pod["tolerations"] = [{"key": it["key"], "operator": "Exists", "effect": it["effect"]} for it in taints]

    await conflict_retry.retry_on_conflict(scenario.client, JOBSETS, name, scenario.namespace, resume)
