"""Groups are not proven to fit on nodes that the anti-affinity of bound pods closes to them (G3, Fit)."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_gate.fake.clock import VirtualClock
from jobset_gate.kube.resources import NODES, PODS
from jobset_gate.podgroups.record import AdmissionMode
from tests.fakes.podgroups.cluster import OWNED, InMemoryCluster, asking, run_for, running_controller
from tests.fakes.podgroups.filled_cache import FilledCache
from tests.fakes.podgroups.objects import key, node, pod
from tests.fakes.podgroups.sources import Json

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def loner(name: str = "loner", on: str = "n", topology: str = HOST, namespace: str = "team", **more: Any) -> Json:
    """A pod of nobody's group that keeps pods of the gang away."""
    term = {"labelSelector": {"matchLabels": {"app": "gang"}}, "topologyKey": topology, **more}
    spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    return pod(name, labels={}, held="", gates=(), node=on, spec=spec, namespace=namespace)


MARKS = frozenset({("team", (("app", "gang"), ("job", "x")))})


def test_a_pod_keeps_others_from_all_nodes_of_its_topology() -> None:
    made = FilledCache().nodes(
        *(node(it, labels={ZONE: zone}, cpu="4") for it, zone in (("a", "1"), ("b", "1"), ("c", "2")))
    )
    assert made.cache.nodes.excluded_nodes(MARKS) == frozenset()
    body = loner(on="a")
    made.pods(body)
    assert made.cache.nodes.excluded_nodes(MARKS) == {"a"}
    assert made.cache.nodes.excluded_nodes(frozenset({("team", (("app", "other"),))})) == frozenset()
    assert made.cache.nodes.excluded_nodes(frozenset({("elsewhere", (("app", "gang"),))})) == frozenset()
    made.pods(loner("wide", on="a", topology=ZONE, namespace="far", namespaceSelector={}))
    assert made.cache.nodes.excluded_nodes(MARKS) == {"a", "b"}
    made.remove(PODS, body)
    assert made.cache.nodes.excluded_nodes(MARKS) == {"a", "b"}


@pytest.fixture
async def cluster(clock: VirtualClock) -> InMemoryCluster:
    made = InMemoryCluster(clock)
    made.put(NODES, node("n", cpu="4", memory="9Gi"))
    return made


async def test_a_group_that_others_keep_away_is_not_opened_as_if_it_had_room(cluster: InMemoryCluster) -> None:
    """It would be opened, bound nowhere, and taken back again and again, its room kept from all others meanwhile."""
    cluster.put(PODS, loner())
    async with running_controller(cluster) as running:
        app = OWNED | {"labels": pod(of=key("gang"))["metadata"]["labels"] | {"app": "gang"}}
        cluster.create_group("gang", "a", "b", minimum=2, meta=app, spec=asking("1"))
        await run_for(5)
        assert cluster.ungated_pods() == ["loner"]
        why = running.controllers.pending.why_pending(key("gang"))
        assert why is not None
        assert why.message == "needs 2 cpu, 0 free; from 1 node others keep it away by their anti-affinity"
        cluster.create_group("others", "x", "y", "z", minimum=3, spec=asking("1"))
        await run_for(5)
        assert cluster.ungated_pods() == ["loner", "x", "y", "z"], "its room is nobody's"
        cluster.bind("x", "y", "z")
        cluster.put(NODES, node("m", cpu="4", memory="9Gi"))
        await run_for(5)
        found = cluster.recorded("gang")
        assert found.how is AdmissionMode.FIT, "there it is proven"


async def test_pods_of_other_groups_keep_away_too(cluster: InMemoryCluster) -> None:
    async with running_controller(cluster):
        spec = loner()["spec"]
        cluster.create_group("first", "a", minimum=1, spec={"affinity": spec["affinity"], **asking("1")})
        await run_for()
        cluster.bind("a")
        app = OWNED | {"labels": pod(of=key("gang"))["metadata"]["labels"] | {"app": "gang"}}
        cluster.create_group("gang", "x", minimum=1, meta=app, spec=asking("1"))
        await run_for(5)
        assert cluster.ungated_pods() == ["a"]
