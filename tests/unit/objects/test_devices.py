"""Which devices a pod occupies, by the rules by which the scheduler counts them."""

from typing import Any

import msgspec
import pytest

from jobset_gate.barrier import wire
from jobset_gate.objects import devices
from jobset_gate.sources import decode
from tests.fakes.jobsets import jobset, replicated

GPU = "nvidia.com/gpu"
Json = dict[str, Any]


def container(many: Any = None, **more: Any) -> Json:
    return {"name": "c", "image": "i", "resources": {"limits": {GPU: many, "cpu": "4"}} if many else {}} | more


def seen(*containers: Json, inits: tuple[Json, ...] = ()) -> tuple[tuple[str, int], ...]:
    """The devices of a JobSet's pods, as the controller reads them."""
    pod = {"containers": list(containers), "initContainers": list(inits)}
    raw = msgspec.json.encode(jobset(replicated(pod=pod)))
    found = decode.jobset(msgspec.json.decode(raw, type=wire.JobSet))
    assert found is not None
    return found.replicated_jobs[0].devices


PLAIN = container(resources={"requests": {"cpu": 1, "memory": "1Gi", "hugepages-2Mi": "4Mi"}})
BOTH = container(resources={"requests": {GPU: 1}, "limits": {GPU: 1, "google.com/tpu": 4}})
SIDECAR = container(1, restartPolicy="Always")
COUNTED: dict[str, tuple[list[Json], tuple[Json, ...], tuple[tuple[str, int], ...]]] = {
    "main containers add up": ([container(8), container(), container("2")], (), ((GPU, 10),)),
    "cpu and memory are no devices": ([PLAIN, container()], (), ()),
    "requests come before limits, which stand for them": ([BOTH], (), (("google.com/tpu", 4), (GPU, 1))),
    "an init container that needs more": ([container(2)], (container(8),), ((GPU, 8),)),
    "an init container that needs less": ([container(8)], (container(2),), ((GPU, 8),)),
    "a sidecar stays": ([container(2)], (SIDECAR,), ((GPU, 3),)),
    "a sidecar adds to all after it": ([container(2)], (SIDECAR, container(8)), ((GPU, 9),)),
    "a sidecar adds to nothing before it": ([container(2)], (container(8), SIDECAR), ((GPU, 8),)),
}


@pytest.mark.parametrize("what", COUNTED)
def test_devices_are_counted_as_the_scheduler_counts_them(what: str) -> None:
    containers, inits, expected = COUNTED[what]
    assert seen(*containers, inits=inits) == expected


@pytest.mark.parametrize("odd", ["0", "-1", "many", "500m", "", True, [], {}])
def test_amounts_that_are_none_are_left_out(odd: Any) -> None:
    assert seen(container(resources={"requests": {GPU: odd}})) == ()


def test_devices_are_extended_resources() -> None:
    mine = {GPU, "google.com/tpu", "rdma/hca_shared_devices_a", "notkubernetes.io/thing"}
    others = {"cpu", "hugepages-1Gi", "kubernetes.io/batch-cpu", "x.kubernetes.io/thing", "requests.nvidia.com/gpu"}
    assert {it for it in mine | others if devices.is_device(it)} == mine
