"""What users write on their own objects harms neither the groups of others nor the controller (G2, G3)."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from jobset_gate import names
from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState, decode_record, encode_record
from jobset_gate.settings import Groups
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.podgroups.cluster import (
    OWNED,
    PLUGINS,
    PROBE,
    InMemoryCluster,
    add_node,
    asking,
    run_for,
    running_controller,
)
from tests.fakes.podgroups.objects import key, pod, pod_group, record
from tests.fakes.podgroups.snapshots import timestamp

EVIL = key("evil", namespace="evil")
HUGE = asking("1000")


@pytest.fixture
async def cluster(clock: VirtualClock) -> InMemoryCluster:
    made = InMemoryCluster(clock)
    add_node(made)
    return made


def forge(cluster: InMemoryCluster, text: str) -> None:
    """A user writes a record on a PodGroup."""
    cluster.put(PLUGINS, pod_group("evil", namespace="evil", notes={names.POD_GROUP_RECORD: text}))


def rolling(**more: object) -> AdmissionRecord:
    return msgspec.structs.replace(record((EVIL, 1), stage=AdmissionState.ROLLING_BACK), **more)


async def test_a_record_with_odd_values_stops_no_group(cluster: InMemoryCluster) -> None:
    """Beyond what a float can be; what no record can be is in tests/unit/podgroups/test_record.py."""
    forge(cluster, encode_record(rolling(wait=Fraction(10) ** 400)))
    async with running_controller(cluster):
        cluster.create_group("g", "a", "b", minimum=2)
        await run_for()
        assert cluster.ungated_pods() == ["a", "b"]


@pytest.mark.parametrize("across", [False, True])
async def test_a_record_takes_back_no_group_of_another_namespace(cluster: InMemoryCluster, across: bool) -> None:
    """Nor where gangs of several may join: this one has not."""
    async with running_controller(cluster, Groups(across_namespaces=across)):
        cluster.create_group("g", "a", "b", minimum=2, meta=OWNED)
        await run_for()
        cluster.bind("a", "b")
        await run_for()
        forge(cluster, encode_record(rolling(gangs=((EVIL, 1), (key("g"), 1)))))
        await run_for(60)
        assert cluster.ungated_pods() == ["a", "b"]
        found = cluster.recorded()
        assert found.satisfied is not None


async def test_a_limit_of_years_keeps_others_from_being_tried_for_an_hour_at_most(cluster: InMemoryCluster) -> None:
    async with running_controller(cluster, PROBE):
        cluster.create_group(
            "first", "a", minimum=1, meta=OWNED, spec=HUGE, terms={"scheduleTimeoutSeconds": 2**31 - 1}
        )
        cluster.create_group("other", "b", minimum=1, meta=OWNED, spec=HUGE)
        await run_for(3590)
        assert cluster.ungated_pods() == ["a"]
        await run_for(30)
        assert cluster.ungated_pods() == ["b"]
        found = cluster.recorded("first")
        assert found.why == "0 of 1 pods were bound within 3600s, the longest limit there is"


@pytest.mark.parametrize("bound", [False, True])
async def test_a_record_reserves_no_room_that_its_pods_do_not_ask_for(cluster: InMemoryCluster, bound: bool) -> None:
    said = record((EVIL, 1), minimum=10**6, many=10**6)
    forge(cluster, encode_record(msgspec.structs.replace(said, wait=Fraction(10**9))))
    notes = {names.POD_GROUP_OPENED: f"1 {timestamp(cluster.clock())}"}
    tiny = pod("evil", of=EVIL, namespace="evil", gates=(), notes=notes, spec=asking("1m"), node="n" if bound else "")
    cluster.put(PODS, tiny | {"metadata": tiny["metadata"] | OWNED})
    async with running_controller(cluster):
        await run_for()
        cluster.create_group("g", "a", "b", minimum=2, spec=asking("49"))
        await run_for(10)
        assert cluster.ungated_pods() == ["evil", "a", "b"]
        await run_for(120)
        found = cluster.stored(PLUGINS, "evil", "evil")["metadata"]["annotations"][names.POD_GROUP_RECORD]
        assert decode_record(found).stage is not AdmissionState.OPEN, "its limit is the one that its PodGroup says"
