"""What a pod that is gated alone says of its gang, whatever the source (K3)."""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from jobset_gate.barrier import config, wire
from jobset_gate.barrier.member import MemberSeen, ObjectSeen
from jobset_gate.barrier.model import ANY_POD, JobSeen, PodSeen, ReplicatedJobSeen, WorkloadSeen
from jobset_gate.errors import Malformed
from jobset_gate.names import ON_TIMEOUT_RELEASE
from jobset_gate.objects.devices import Devices
from jobset_gate.sources import templates

TARGET = ""
"""Name of the only template of such a gang."""


class Gathered(NamedTuple):
    """What the pods of a gang are in a snapshot."""

    workload: WorkloadSeen
    job: JobSeen
    """The one Job that the rules count by: all pods are its slots."""
    pods: tuple[PodSeen, ...]


class _Notes(NamedTuple):
    """The annotations of a pod that say what its gang is to do, as they are."""

    config: str | None
    bypass: str
    on_timeout: str


def member(seen: wire.MemberPod, owner: ObjectSeen, size: int) -> MemberSeen:
    """The owner is the object that makes the pods of the gang; `size`: how many wait for each other."""
    notes = seen.metadata.annotations or templates.NO_ANNOTATIONS
    return _member(
        owner,
        size,
        _Notes(notes.config, notes.bypass, notes.on_timeout),
        templates.member_devices(seen.spec),
        has_barrier=templates.barrier_container(seen.spec) is not None,
    )


@lru_cache(maxsize=4096)
def _member(owner: ObjectSeen, size: int, notes: _Notes, devices: Devices, *, has_barrier: bool) -> MemberSeen:
    """One copy for all pods of a template. Text that the webhook would refuse is read as absent."""
    try:
        timeout = config.stored_config(None, notes.config, has_targets=False).timeout
    except Malformed:
        timeout = None
    return MemberSeen(
        owner=owner,
        size=size,
        timeout=timeout,
        bypass=notes.bypass == "true",
        releases_on_timeout=notes.on_timeout == ON_TIMEOUT_RELEASE,
        has_barrier=has_barrier,
        devices=devices,
    )


def bare_pod(pods: Iterable[PodSeen], said: Iterable[MemberSeen]) -> str:
    """The first name of a live pod without a barrier, "" without one. `said`: what the pods say, each once."""
    if all(it.has_barrier for it in said):
        return ""
    return min((it.name for it in pods if it.live and it.member and not it.member.has_barrier), default="")


def only_job(workload: WorkloadSeen, name: str) -> JobSeen:
    """The one Job of a gang without Jobs; `name`: that of the object that makes the pods."""
    return JobSeen(
        namespace=workload.namespace,
        name=name,
        uid=ANY_POD,
        source=workload.source.name,
        gang=workload.name,
        workload_uid=workload.uid,
        replicated_job=TARGET,
        job_index=0,
        attempt=workload.attempt,
    )


def only_target(size: int, devices: Devices, *, indexed: bool) -> tuple[ReplicatedJobSeen]:
    """The one template of a gang without templates: `size` pods, `indexed` if each has a place of its own."""
    return (
        ReplicatedJobSeen(
            name=TARGET,
            replicas=1,
            parallelism=size,
            completions=size if indexed else None,
            indexed=indexed,
            has_barrier=True,
            epoch=0,
            devices=devices,
        ),
    )
