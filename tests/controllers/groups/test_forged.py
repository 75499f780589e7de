"""What users may write on their own objects does nothing to other people's groups, nor to the controller (G2, G3)."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from jobset_gate import names
from jobset_gate.groups.candidates import Check
from jobset_gate.groups.record import Record, Stage, parse, render
from jobset_gate.kube.resources import JOBS, PODS
from jobset_gate.settings import Groups
from jobset_gate.sim.clock import VirtualClock
from tests.controllers.groups.small import PLUGINS, SmallCluster, add_node, keeping, settled
from tests.jobset_gate.groups.builders import Json
from tests.jobset_gate.groups.objects import key, pod, pod_group, record
from tests.jobset_gate.groups.seeing import stamp

EVIL = key("evil", namespace="evil")
MADE = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u-r", "controller": True}]
}
"""Of pods that a controller makes: such are taken back."""
PROBE = Groups(capacity_check=Check.PROBE)


def asking(cpu: str) -> Json:
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}


LARGE, HUGE = asking("10"), asking("1000")


@pytest.fixture
async def cluster(clock: VirtualClock) -> SmallCluster:
    made = SmallCluster(clock)
    add_node(made)
    return made


def forge(cluster: SmallCluster, text: str) -> None:
    """Somebody writes a record on his PodGroup."""
    cluster.put(PLUGINS, pod_group("evil", namespace="evil", notes={names.GANG_RECORD: text}))


def rolling(**more: object) -> Record:
    return msgspec.structs.replace(record((EVIL, 1), stage=Stage.ROLLING_BACK), **more)


@pytest.mark.parametrize(
    "text",
    [
        render(rolling(wait=Fraction(10) ** 400)),
        render(rolling()).replace('"60"', '"1e999999999"'),
        render(rolling(not_before=1e300)),
        render(rolling())[:-1] + ',"more":' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
    ids=["beyond floats", "a power of ten", "no date", "deep"],
)
async def test_a_record_with_odd_values_stops_nobody(cluster: SmallCluster, text: str) -> None:
    forge(cluster, text)
    async with keeping(cluster):
        cluster.gather("g", "a", "b", minimum=2)
        await settled()
        assert cluster.open() == ["a", "b"]


@pytest.mark.parametrize("across", [False, True])
async def test_a_record_takes_back_no_group_of_another_namespace(cluster: SmallCluster, across: bool) -> None:
    """Nor where gangs of several may join: this one has not."""
    async with keeping(cluster, Groups(across_namespaces=across)):
        cluster.gather("g", "a", "b", minimum=2, meta=MADE)
        await settled()
        cluster.bind("a", "b")
        await settled()
        forge(cluster, render(rolling(gangs=((EVIL, 1), (key("g"), 1)))))
        await settled(60)
        assert cluster.open() == ["a", "b"]
        found = cluster.record()
        assert found is not None
        assert found.satisfied is not None


async def test_a_date_to_come_on_a_pod_stretches_no_limit(cluster: SmallCluster) -> None:
    """Also not for a controller that comes later and knows only what is written."""
    async with keeping(cluster, PROBE):
        cluster.gather("g", "a", minimum=1, meta=MADE, spec=HUGE)
        await settled()
        assert cluster.open() == ["a"]
        cluster.change(PODS, "a", {"metadata": {"annotations": {names.GANG_OPENED: "1 9999-12-30T00:00:00Z"}}})
        await settled()
    async with keeping(cluster, PROBE):
        await settled(65)
        found = cluster.record()
        assert found is not None
        assert found.rolled_back == 1


async def test_a_limit_of_years_keeps_others_from_being_tried_for_an_hour_at_most(cluster: SmallCluster) -> None:
    async with keeping(cluster, PROBE):
        cluster.gather("first", "a", minimum=1, meta=MADE, spec=HUGE, terms={"scheduleTimeoutSeconds": 2**31 - 1})
        cluster.gather("other", "b", minimum=1, meta=MADE, spec=HUGE)
        await settled(3590)
        assert cluster.open() == ["a"]
        await settled(30)
        assert cluster.open() == ["b"]
        found = cluster.record("first")
        assert found is not None
        assert found.why == "0 of 1 pods were bound within 3600s, the longest limit there is"


async def test_a_group_that_can_never_fit_keeps_nobody_waiting(cluster: SmallCluster) -> None:
    """However long it has waited: it would not help it. Once the nodes could hold it, it does."""
    async with keeping(cluster) as keeper:
        cluster.gather("huge", "a", minimum=1, spec=HUGE)
        cluster.gather("half", *"bcdef", minimum=5, spec=LARGE)
        await settled()
        cluster.bind(*"bcdef")
        await settled(Groups().starvation_seconds + 5)
        cluster.gather("g", "x", minimum=1)
        await settled(5)
        assert cluster.open() == [*"bcdef", "x"]
        cluster.bind("x")
        why = keeper.part.why(key("huge"))
        assert why is not None
        assert why.message.endswith("can never fit on the nodes there are: the whole domain has 100 cpu")
        add_node(cluster, "big", cpu="1000")
        cluster.put(PODS, pod("theirs", labels={}, held="", gates=(), node="big", spec=LARGE))
        await settled(10)
        cluster.gather("late", "y", minimum=1)
        await settled(5)
        assert "y" not in cluster.open()
        cluster.remove(PODS, "theirs")
        await settled(5)
        assert "a" in cluster.open()


DAEMON = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u-d", "controller": True}]
}
STATIC = {"annotations": {names.MIRROR_POD: "x"}}


@pytest.mark.parametrize("meta", [DAEMON, STATIC], ids=["a DaemonSet's", "static"])
async def test_what_belongs_to_a_node_is_never_free_so_a_group_that_needs_it_can_never_fit(
    cluster: SmallCluster, meta: Json
) -> None:
    """One pod of a whole node would otherwise stop all others from the time that it may not be passed any more."""
    small = asking("100m")
    body = pod("agent", labels={}, held="", gates=(), node="n", spec=small)
    cluster.put(PODS, body | {"metadata": body["metadata"] | meta})
    async with keeping(cluster) as keeper:
        cluster.gather("whole", "a", minimum=1, spec=asking("100"))
        await settled(Groups().starvation_seconds + 10)
        cluster.gather("z", "x", minimum=1, spec=small)
        await settled(5)
        assert cluster.open() == ["agent", "x"]
        why = keeper.part.why(key("whole"))
        assert why is not None
        assert why.message.endswith("can never fit on the nodes there are: the whole domain has 99.9 cpu")


async def test_a_group_that_fits_only_an_empty_cluster_stops_others_for_a_while(cluster: SmallCluster) -> None:
    wait = Groups().starvation_seconds
    cluster.put(PODS, pod("service", labels={}, held="", gates=(), node="n"))
    async with keeping(cluster):
        cluster.gather("whole", "a", minimum=1, spec=asking("100"))
        await settled(wait + 10)
        cluster.gather("z", "x", minimum=1)
        await settled(wait)
        assert cluster.open() == ["service"]
        await settled(wait + 10)
        assert cluster.open() == ["service", "x"]


async def test_what_a_pod_group_claims_beyond_its_pods_stops_nobody(cluster: SmallCluster) -> None:
    """No quota counts it. It is not opened without that, as it said."""
    cluster.put(PODS, pod("service", labels={}, held="", gates=(), node="n"))
    async with keeping(cluster) as keeper:
        cluster.gather("greedy", "a", minimum=1, terms={"minResources": {"cpu": "100"}}, spec=asking("1m"))
        await settled(Groups().starvation_seconds + 10)
        cluster.gather("z", "x", "y", minimum=2)
        await settled(5)
        assert cluster.open() == ["service", "x", "y"]
        why = keeper.part.why(key("greedy"))
        assert why is not None
        assert why.message == "needs 100 cpu, 98.5 free"


@pytest.mark.parametrize("bound", [False, True])
async def test_a_record_reserves_no_room_that_its_pods_do_not_ask_for(cluster: SmallCluster, bound: bool) -> None:
    said = record((EVIL, 1), minimum=10**6, many=10**6)
    forge(cluster, render(msgspec.structs.replace(said, wait=Fraction(10**9))))
    notes = {names.GANG_OPENED: f"1 {stamp(cluster.clock())}"}
    tiny = pod("evil", of=EVIL, namespace="evil", gates=(), notes=notes, spec=asking("1m"), node="n" if bound else "")
    cluster.put(PODS, tiny | {"metadata": tiny["metadata"] | MADE})
    async with keeping(cluster):
        await settled()
        cluster.gather("g", "a", "b", minimum=2, spec=asking("49"))
        await settled(10)
        assert cluster.open() == ["evil", "a", "b"]
        await settled(120)
        found = cluster.there(PLUGINS, "evil", "evil")["metadata"]["annotations"][names.GANG_RECORD]
        assert parse(found).stage is not Stage.OPEN, "its limit is the one that its PodGroup says"


async def test_a_mark_with_a_number_that_nobody_reads_stops_nobody(cluster: SmallCluster) -> None:
    notes = {names.GANG_SUSPENDED: "x." + "9" * 5000}
    meta = {"name": "odd", "namespace": "evil", "labels": {names.GANG_SUSPENDED: "x"}, "annotations": notes}
    cluster.put(JOBS, {"metadata": meta, "spec": {"suspend": True}})
    async with keeping(cluster):
        cluster.gather("g", "a", "b", minimum=2)
        await settled()
        assert cluster.open() == ["a", "b"]
        assert len(cluster.all(PODS)) == 2
