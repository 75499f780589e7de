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


def test_the_main_containers_of_a_pod_add_up() -> None:
    assert seen(container(8), container(), container("2")) == ((GPU, 10),)


def test_cpu_and_memory_are_no_devices() -> None:
    plain = container(resources={"requests": {"cpu": 1, "memory": "1Gi", "hugepages-2Mi": "4Mi"}})
    assert seen(plain) == ()


def test_a_pod_that_says_nothing_has_none() -> None:
    assert seen({"name": "c", "image": "i"}) == ()


def test_requests_come_before_limits_and_limits_stand_for_requests() -> None:
    both = {"requests": {GPU: 1}, "limits": {GPU: 1, "google.com/tpu": 4}}
    assert seen(container(resources=both)) == (("google.com/tpu", 4), (GPU, 1))


def test_an_init_container_counts_as_far_as_it_needs_more() -> None:
    assert seen(container(2), inits=(container(8),)) == ((GPU, 8),)
    assert seen(container(8), inits=(container(2),)) == ((GPU, 8),)


def test_a_sidecar_stays_so_it_adds_to_all_after_it() -> None:
    sidecar = container(1, restartPolicy="Always")
    assert seen(container(2), inits=(sidecar,)) == ((GPU, 3),)
    assert seen(container(2), inits=(sidecar, container(8))) == ((GPU, 9),)
    assert seen(container(2), inits=(container(8), sidecar)) == ((GPU, 8),)


@pytest.mark.parametrize("odd", ["0", "-1", "many", "500m", "", True, [], {}])
def test_amounts_that_are_none_are_left_out(odd: Any) -> None:
    assert seen(container(resources={"requests": {GPU: odd}})) == ()


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        (GPU, True),
        ("google.com/tpu", True),
        ("rdma/hca_shared_devices_a", True),
        ("cpu", False),
        ("hugepages-1Gi", False),
        ("kubernetes.io/batch-cpu", False),
        ("x.kubernetes.io/thing", False),
        ("notkubernetes.io/thing", True),
        ("requests.nvidia.com/gpu", False),
    ],
)
def test_devices_are_extended_resources(name: str, is_one: bool) -> None:
    assert devices.is_device(name) is is_one
