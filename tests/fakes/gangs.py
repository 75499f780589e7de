"""Builders of what a controller may see of a gang. Every default is healthy, unsuspended and of one replicatedJob."""

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from jobset_gate import names
from jobset_gate.barrier.decide import decide
from jobset_gate.barrier.decision import Blocked, Decide, Enforce, Ignore, Wait
from jobset_gate.barrier.missing import MissingSlot, missing_by_job, slot_of_pod
from jobset_gate.barrier.model import (
    BarrierStage,
    ConditionSeen,
    Config,
    ConfigMapSeen,
    GangSnapshot,
    Generation,
    JobSeen,
    PendingCause,
    PendingReason,
    PodSeen,
    ReplicatedJobSeen,
    Verdict,
    VerdictKind,
    WaitingSince,
    WorkloadSeen,
)
from jobset_gate.barrier.source import Source
from jobset_gate.sources.table import JOB, JOBSET

source: Source = JOBSET
"""Of all that is built; the fixture `each_source` changes it."""

UID = "u-1"
T0 = 1_800_000_000.0
NOW = T0 + 10
D = TypeVar("D", Blocked, Decide, Enforce, Ignore, Wait)


def generation(attempt: int = 0, epoch: int = 0, uid: str = UID) -> Generation:
    return Generation(uid, attempt, epoch)


def replicated_job(name: str = "workers", **changes: Any) -> ReplicatedJobSeen:
    made = ReplicatedJobSeen(
        name=name, replicas=1, parallelism=2, completions=2, indexed=True, has_barrier=True, epoch=0
    )
    return msgspec.structs.replace(made, **changes)


def slot(index: int) -> str:
    """How messages name it."""
    return f"workers-0/{source.shown_index(index)}"


def jobset(*jobs: ReplicatedJobSeen, **changes: Any) -> WorkloadSeen:
    made = WorkloadSeen(
        source=source,
        namespace="default",
        name="train",
        uid=UID,
        created=T0 - 60,
        attempt=0,
        suspended=False,
        deleting=False,
        finished=False,
        managed_elsewhere=False,
        config=Config(timeout=300),
        config_problem="",
        bypass=False,
        releases_on_timeout=False,
        replicated_jobs=jobs or (replicated_job(),),
        condition=None,
    )
    return msgspec.structs.replace(made, **changes)


def job(replicated: str = "workers", number: int = 0, **changes: Any) -> JobSeen:
    made = JobSeen(
        namespace="default",
        name=f"train-{replicated}-{number}",
        uid=f"job-{replicated}-{number}",
        source=source.name,
        gang="train",
        workload_uid=UID,
        replicated_job=replicated,
        job_index=number,
        attempt=0,
        suspended=False,
        deleting=False,
        complete=False,
        succeeded=0,
        completed=frozenset(),
    )
    return msgspec.structs.replace(made, **changes)


def pod(index: int | None = 0, replicated: str = "workers", number: int = 0, **changes: Any) -> PodSeen:
    """A pod whose barrier runs since T0."""
    made = PodSeen(
        namespace="default",
        name=f"train-{replicated}-{number}-{index}",
        uid=f"pod-{replicated}-{number}-{index}",
        source=source.name,
        gang="train",
        workload_uid=UID,
        job_uid=f"job-{replicated}-{number}",
        replicated_job=replicated,
        job_index=number,
        index=index,
        attempt=0,
        epoch=0,
        phase="Pending",
        deleting=False,
        bound=True,
        stage=BarrierStage.RUNNING,
        created=T0 - 30,
        barrier_since=T0,
        main_since=None,
        verdict="",
        pending=None,
    )
    return msgspec.structs.replace(made, **changes)


def waiting_pod(
    index: int | None = 0, why: PendingReason = PendingReason.UNSCHEDULED, detail: str = "", **changes: Any
) -> PodSeen:
    stall = PendingCause(reason=why, message=detail)
    return pod(index, **({"stage": BarrierStage.WAITING, "barrier_since": None, "pending": stall} | changes))


def verdict(kind: VerdictKind = VerdictKind.RELEASE, cause: str = names.REASON_STARTED, **where: Any) -> Verdict:
    return Verdict(kind=kind, generation=generation(**where), cause=cause, message="as decided")


def clock(at: float = T0, **where: Any) -> WaitingSince:
    return WaitingSince(generation=generation(**where), at=at)


def config_map(**changes: Any) -> ConfigMapSeen:
    made = ConfigMapSeen(
        namespace="default",
        name=source.config_map_name("train"),
        uid="cm-1",
        resource_version="7",
        source=source.name,
        gang="train",
        workload_uid=UID,
        verdict=None,
        waiting_since=None,
        canonical=True,
    )
    name = changes.get("name", made.name)
    return msgspec.structs.replace(made, **{"gang": name.removesuffix(source.config_map_suffix)} | changes)


def condition(reason: str, message: str, status: str = "True") -> ConditionSeen:
    return ConditionSeen(status=status, reason=reason, message=message, since="2027-01-15T08:00:00Z")


def gang(*pods: PodSeen, **changes: Any) -> GangSnapshot:
    """A gang of two workers in one Job, with its ConfigMap, and these pods."""
    made = GangSnapshot(workload=jobset(), jobs=(job(),), pods=pods, config_map=config_map())
    return msgspec.structs.replace(made, **changes)


def missing_slots(seen: GangSnapshot) -> Iterator[MissingSlot]:
    """Every slot without a started pod, in the order of the spec."""
    for pods, absent, _ in missing_by_job(seen):
        yield from (slot_of_pod(seen, it) for it in pods)
        yield from absent


def job_gang(*pods: PodSeen) -> GangSnapshot:
    """A Job of two pods that is a gang itself, with its ConfigMap, and these pods."""
    workload = jobset(replicated_job(""), source=JOB)
    only = job("", name="train", uid=UID, source="job", workload=workload)
    return GangSnapshot(
        workload=workload,
        jobs=(only,),
        pods=tuple(msgspec.structs.replace(it, replicated_job="", job_uid=UID, source="job") for it in pods),
        config_map=config_map(name=JOB.config_map_name("train"), source="job", gang="train"),
    )


def decided(kind: type[D], seen: GangSnapshot, at: float = NOW) -> D:
    """The decision, which is of this kind."""
    found = decide(seen, at)
    assert isinstance(found, kind)
    return found
