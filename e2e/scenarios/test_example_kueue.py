"""examples/kueue.yaml, Kueue being played: suspended, then let go with a flavor's node selector and tolerations."""

from collections.abc import Callable

from e2e import facts, overlays, plays, writes
from e2e.nodes import Nodes
from e2e.overlays import Overlay
from e2e.world import Scenario
from jobset_gate.kube.resources import JOBSETS, NODES
from jobset_gate.sim.objects import Json

EXAMPLE = "kueue.yaml"


async def test_its_pods_meet_on_the_nodes_of_the_flavor(
    world: Scenario, nodes: Nodes, say: Callable[[str], None]
) -> None:
    node = await flavored(world, nodes)
    async with nodes.extended_resource(world.namespace) as seats:
        overlay = Overlay(world.ground.image, world.namespace, seats.request, plays.KUEUE[EXAMPLE].commands)
        made = [overlay.over(one) for one in overlays.documents(EXAMPLE)]
        many = overlays.with_extended_resource(made)
        await seats.set_capacity(facts.name_of(node), many - 1)
        await world.apply(*made)
        await world.until_jobset(lambda jobset: facts.condition(jobset, "Suspended").get("status") == "True")
        assert world.pods.all() == []
        await admit(world, facts.name_of(made[-1]), node)
        held = await world.until_held(many - 1)
        assert {pod["spec"]["nodeName"] for pod in held if facts.held(pod)} == {facts.name_of(node)}
        await seats.set_capacity(facts.name_of(node), many)
        jobset = await world.until_jobset(lambda jobset: facts.completed(jobset) or facts.failed(jobset))
    assert facts.completed(jobset), jobset["status"]
    say(f"examples/{EXAMPLE}: {many} pods have met; {overlays.PRINTED}; Kueue was played")


async def flavored(world: Scenario, nodes: Nodes) -> Json:
    """A node that pods reach by a selector and tolerations alone, where there is one with a taint for good."""
    usual = (await nodes.workers())[0]
    all_ = (await world.client.list(NODES))["items"]
    tainted = [node for node in all_ if node["spec"].get("taints") and not any(map(passing, node["spec"]["taints"]))]
    return dict((tainted or [node for node in all_ if facts.name_of(node) == usual])[0])


def passing(taint: Json) -> bool:
    """Kubernetes itself gives it to a node that is not well, and takes it off."""
    return str(taint["key"]).startswith("node.kubernetes.io/")


async def admit(world: Scenario, name: str, node: Json) -> None:
    """In one update, as Kueue does it: let go, with what the flavor of each set of pods says.

    Again when JobSet's controller or ours has written meanwhile, which the JobSet's being new makes likely.
    """

    def let_go(jobset: Json) -> None:
        jobset["spec"]["suspend"] = False
        for job in jobset["spec"]["replicatedJobs"]:
            pod = job["template"]["spec"]["template"]["spec"]
            pod["nodeSelector"] = {"kubernetes.io/hostname": facts.name_of(node)}
            taints = node["spec"].get("taints") or ()
            pod["tolerations"] = [{"key": it["key"], "operator": "Exists", "effect": it["effect"]} for it in taints]

    await writes.retry_on_conflict(world.client, JOBSETS, name, world.namespace, let_go)
