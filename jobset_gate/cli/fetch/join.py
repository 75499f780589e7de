"""What was read of one JobSet, joined: the counterpart of the controller's index for somebody who looks once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec

from jobset_gate import names
from jobset_gate.barrier import decode, wire
from jobset_gate.barrier.model import ConfigMapSeen, GangSnapshot, JobSeen, PodSeen
from jobset_gate.cli.fetch.failure_policies import failure_policies
from jobset_gate.explain.model import FailurePolicies
from jobset_gate.objects.unstructured import Json


@dataclass(frozen=True, slots=True)
class FetchedJobSet:
    """One JobSet as it was seen."""

    namespace: str
    name: str
    seen: GangSnapshot | None
    """None: it asks for no gate."""
    stored: Json = field(default_factory=dict)
    """The JobSet as the API has it."""
    pods: Sequence[wire.Pod] = ()
    policy: FailurePolicies | None = None
    blind: bool = False
    """Its pods may not be read."""

    def with_gang(self, seen: GangSnapshot) -> FetchedJobSet:
        """The same with more known of its gang."""
        return replace(self, seen=seen)


@dataclass(frozen=True, slots=True)
class JobSetParts:
    """What belongs to one JobSet; None: it may not be read."""

    jobs: Sequence[wire.Job] | None
    pods: Sequence[wire.Pod] | None
    config_map: ConfigMapSeen | None = None
    config_map_conflict: bool = False
    """A ConfigMap of the gang's name is somebody else's."""


def join_jobset(raw: msgspec.Raw, parts: JobSetParts) -> FetchedJobSet:
    """The JobSet, joined with its parts."""
    stored: Json = msgspec.json.decode(raw)
    jobset = decode.jobset(msgspec.json.decode(raw, type=wire.JobSet))
    meta = stored["metadata"]
    if jobset is None:
        return FetchedJobSet(meta["namespace"], meta["name"], None, stored)
    pods = tuple(decode.pod(it) for it in parts.pods or ())
    jobs = tuple(decode.job(it) for it in parts.jobs or ()) if parts.jobs is not None else _jobs_of_pods(pods)
    told = jobset.condition is not None and jobset.condition.reason == names.REASON_CONFIG_MAP_CONFLICT
    seen = GangSnapshot(
        jobset=jobset,
        jobs=jobs,
        pods=pods,
        config_map=parts.config_map,
        config_map_conflict=parts.config_map_conflict or (told and parts.config_map is None),
    )
    rules = failure_policies(stored, jobset.config.targets)
    return FetchedJobSet(
        meta["namespace"], meta["name"], seen, stored, parts.pods or (), rules, blind=parts.pods is None
    )


def _jobs_of_pods(pods: Sequence[PodSeen]) -> tuple[JobSeen, ...]:
    """The Jobs that these pods tell of, taken to be neither suspended nor finished."""
    found: dict[str, JobSeen] = {}
    for pod in pods:
        if not pod.job_uid:
            continue
        found[pod.job_uid] = JobSeen(
            namespace=pod.namespace,
            name=f"{pod.gang}-{pod.replicated_job}-{pod.job_index}",
            uid=pod.job_uid,
            gang=pod.gang,
            jobset_uid=pod.jobset_uid,
            replicated_job=pod.replicated_job,
            job_index=pod.job_index,
            attempt=pod.attempt,
            suspended=False,
            deleting=False,
            complete=False,
            succeeded=0,
            completed=frozenset(),
        )
    return tuple(found.values())
