"""That the minimum was bound is written on the group itself, and holds whatever is lost afterwards (G4)."""

from __future__ import annotations

from jobset_gate import names
from jobset_gate.kube.errors import ServerError
from jobset_gate.kube.resources import CONFIGMAPS, PODS, Resource
from jobset_gate.podgroups.record import AdmissionState
from tests.fakes.podgroups.cluster import OFF, OWNED, PLUGINS, InMemoryCluster, run_for, running_controller
from tests.fakes.podgroups.sources import Json

MANY = [f"g{number}" for number in range(10)]


def gather(cluster: InMemoryCluster, *groups: str) -> None:
    """Groups of two pods that need both."""
    for name in groups:
        cluster.create_group(name, f"{name}-0", f"{name}-1", minimum=2, meta=OWNED)


def bind(cluster: InMemoryCluster, *groups: str) -> None:
    for name in groups:
        cluster.bind(f"{name}-0", f"{name}-1")


def satisfied(cluster: InMemoryCluster, *groups: str) -> list[str]:
    return [name for name in groups if cluster.recorded(name).satisfied is not None]


async def test_it_is_written_on_each_group_at_once_however_many_are_placed(cluster: InMemoryCluster) -> None:
    async with running_controller(cluster, OFF):
        gather(cluster, *MANY)
        await run_for(3)
        bind(cluster, *MANY[:-1])
        await run_for(0.5)
        assert satisfied(cluster, *MANY) == MANY[:-1]
        assert cluster.all(CONFIGMAPS) == [], "and nowhere else"


async def test_a_group_whose_minimum_was_bound_is_satisfied_whatever_comes_before_that_is_written(
    cluster: InMemoryCluster,
) -> None:
    refused: list[str] = []
    over: list[bool] = []

    def fate(_verb: str, _kind: Resource, name: str, body: Json) -> ServerError | None:
        if '"satisfied":1' in str(body) and not over:
            refused.append(name)
            return ServerError(500, "InternalError", "not now")
        return None

    async with running_controller(cluster, OFF):
        gather(cluster, *MANY)
        await run_for(3)
        cluster.fault = fate
        bind(cluster, "g0")
        await run_for(0.4)
        assert refused[0] == "g0"
        cluster.remove(PODS, "g0-1")
        over.append(True)
        await run_for(110)
        assert satisfied(cluster, "g0") == ["g0"]
        assert cluster.recorded("g0").stage is AdmissionState.OPEN
        assert "g0-0" in cluster.ungated_pods()
        assert "g1-0" not in cluster.ungated_pods(), "whose limit has passed"


async def test_a_minimum_that_was_bound_for_a_moment_was_bound(cluster: InMemoryCluster) -> None:
    """Preemption may take a pod at once."""
    async with running_controller(cluster, OFF):
        gather(cluster, "g0")
        await run_for(3)
        bind(cluster, "g0")
        await run_for(0.01)
        cluster.remove(PODS, "g0-1")
        await run_for(110)
        assert satisfied(cluster, "g0") == ["g0"]
        assert "g0-0" in cluster.ungated_pods()


async def test_who_was_satisfied_is_so_for_a_successor_whatever_is_lost_meanwhile(cluster: InMemoryCluster) -> None:
    async with running_controller(cluster, OFF):
        gather(cluster, *MANY)
        await run_for(3)
        bind(cluster, "g0")
        await run_for(0.5)
    cluster.remove(PODS, "g0-1")
    async with running_controller(cluster, OFF):
        await run_for(110)
        assert cluster.recorded("g0").stage is AdmissionState.OPEN
        assert "g0-0" in cluster.ungated_pods()


async def test_a_successor_finds_out_by_itself_who_is_satisfied(cluster: InMemoryCluster) -> None:
    async with running_controller(cluster, OFF):
        gather(cluster, *MANY)
        await run_for(3)
    bind(cluster, *MANY[:-1])
    async with running_controller(cluster, OFF):
        await run_for(2)
        assert satisfied(cluster, *MANY) == MANY[:-1]


async def test_what_an_older_version_has_noted_elsewhere_says_nothing_and_harms_nobody(
    cluster: InMemoryCluster,
) -> None:
    labels = {names.POD_GROUP_RECORD: names.POD_GROUP_RECORD_VALUE, names.MANAGED_BY_LABEL: names.PROGRAM}
    meta: Json = {"name": "jobset-gate-satisfied", "namespace": "system", "labels": labels}
    cluster.put(CONFIGMAPS, {"metadata": meta, "data": {"groups": '{"scheduler-plugins/team/g0":[1,0.0,1.0]}'}})
    async with running_controller(cluster, OFF):
        gather(cluster, "g0")
        await run_for(3)
        assert satisfied(cluster, "g0") == []
        bind(cluster, "g0")
        await run_for(0.5)
        assert satisfied(cluster, "g0") == ["g0"]


async def test_that_a_minimum_was_bound_is_forgotten_with_its_pod_group(cluster: InMemoryCluster) -> None:
    async with running_controller(cluster, OFF):
        gather(cluster, "g0")
        await run_for(3)
        bind(cluster, "g0")
        await run_for(1)
        for kind, name in ((PLUGINS, "g0"), (PODS, "g0-0"), (PODS, "g0-1")):
            cluster.remove(kind, name)
        cluster.create_group("g0", "new-0", "new-1", minimum=2)
        await run_for(1)
        cluster.bind("new-0")
        await run_for(2)
        assert "new-1" in cluster.ungated_pods()
        assert satisfied(cluster, "g0") == []
