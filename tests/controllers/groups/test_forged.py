"""What users may write on their own objects does nothing to other people's groups, nor to the controller (G2, G3)."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from jobset_gate import names
from jobset_gate.groups.record import Record, Stage, render
from jobset_gate.kube.resources import JOBS, PODS
from jobset_gate.settings import Groups
from jobset_gate.sim.clock import VirtualClock
from tests.controllers.groups.small import PLUGINS, SmallCluster, add_node, keeping, settled
from tests.jobset_gate.groups.objects import key, pod_group, record

EVIL = key("evil", namespace="evil")
MADE = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u-r", "controller": True}]
}
"""Of pods that a controller makes: such are taken back."""


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


async def test_a_mark_with_a_number_that_nobody_reads_stops_nobody(cluster: SmallCluster) -> None:
    notes = {names.GANG_SUSPENDED: "x." + "9" * 5000}
    meta = {"name": "odd", "namespace": "evil", "labels": {names.GANG_SUSPENDED: "x"}, "annotations": notes}
    cluster.put(JOBS, {"metadata": meta, "spec": {"suspend": True}})
    async with keeping(cluster):
        cluster.gather("g", "a", "b", minimum=2)
        await settled()
        assert cluster.open() == ["a", "b"]
        assert len(cluster.all(PODS)) == 2
