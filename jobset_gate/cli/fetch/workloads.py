"""Decodes JobSets and Jobs: for the rules, and what their users have written about failures, for the sentence about the
timeout (A7).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import GangKey, JobSeen, PodSeen, WorkloadSeen
from jobset_gate.explain.model import FailurePolicies
from jobset_gate.injection.warnings import USUAL_BACKOFF, matches_timeout
from jobset_gate.objects.unstructured import Json, as_int, as_list, as_map, nested
from jobset_gate.sources import decode
from jobset_gate.sources.table import JOB


class RawWorkload(wire.WireStruct, frozen=True):
    """A JobSet or Job in pieces: its spec is decoded twice, for the rules and as JSON for the user's own policies."""

    metadata: wire.Meta
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")


@dataclass(frozen=True, slots=True)
class StoredWorkload:
    """A workload that asks for a gate, or the Job that is one itself."""

    key: GangKey
    seen: WorkloadSeen | JobSeen
    policies: FailurePolicies


def decode_jobset(raw: RawWorkload) -> StoredWorkload | None:
    """None if it asks for no gate."""
    spec = msgspec.json.decode(raw.spec, type=wire.JobSetSpec | None) or wire.JobSetSpec()
    status = msgspec.json.decode(raw.status, type=wire.JobSetStatus | None) or wire.JobSetStatus()
    seen = decode.jobset(wire.JobSet(metadata=raw.metadata, spec=spec, status=status))
    if seen is None:
        return None
    return StoredWorkload(seen.key, seen, jobset_policies(_stored(raw), seen.config.targets))


def decode_job(raw: RawWorkload) -> StoredWorkload | None:
    """One with the annotation and without our label, too: the webhook was away when it was created (K6)."""
    spec = msgspec.json.decode(raw.spec, type=wire.JobSpec | None) or wire.JobSpec()
    status = msgspec.json.decode(raw.status, type=wire.JobStatus | None) or wire.JobStatus()
    meta, labels = raw.metadata, raw.metadata.labels or wire.NO_LABELS
    if not labels.gated:
        meta = msgspec.structs.replace(meta, labels=msgspec.structs.replace(labels, gated=JOB.gated))
    seen = decode.job(wire.Job(metadata=meta, spec=spec, status=status))
    if seen.workload is None:
        return None
    return StoredWorkload(seen.workload.key, seen, job_policies(_stored(raw)))


def _stored(raw: RawWorkload) -> Json:
    return {
        "metadata": {"labels": {names.KUEUE_QUEUE: raw.metadata.labels.queue if raw.metadata.labels else ""}},
        "spec": msgspec.json.decode(raw.spec),
        "status": msgspec.json.decode(raw.status),
    }


def jobs_of_pods(pods: Sequence[PodSeen]) -> tuple[JobSeen, ...]:
    """Without the right to list Jobs: those that these pods belong to, neither suspended nor finished."""
    return tuple(
        {
            pod.job_uid: JobSeen(
                namespace=pod.namespace,
                name=f"{pod.gang}-{pod.replicated_job}-{pod.job_index}",
                uid=pod.job_uid,
                source=pod.source,
                gang=pod.gang,
                workload_uid=pod.workload_uid,
                replicated_job=pod.replicated_job,
                job_index=pod.job_index,
                attempt=pod.attempt,
            )
            for pod in pods
            if pod.job_uid
        }.values()
    )


# --- What is written about failures ----------------------------------------------------------------------------------


def job_policies(job: Json) -> FailurePolicies:
    """Of a Job that is a gang itself, as it is stored."""
    spec = as_map(job.get("spec"))
    return FailurePolicies(
        backoff_limits=(as_int(_backoff_limit(spec), USUAL_BACKOFF),),
        per_index=spec.get("backoffLimitPerIndex") is not None,
        restarts_in_place=nested(spec, "template", "spec", "restartPolicy") != "Never",
        exit_actions=tuple(_exit_action(spec)),
        queue=str(nested(job, "metadata", "labels", names.KUEUE_QUEUE) or ""),
    )


def jobset_policies(jobset: Json, targets: Sequence[str]) -> FailurePolicies:
    """Of the JobSet as it is stored; `targets` are the replicatedJobs of the gang, empty for all."""
    jobs = [
        it for it in as_list(nested(jobset, "spec", "replicatedJobs")) if not targets or nested(it, "name") in targets
    ]
    specs = [as_map(nested(it, "template", "spec")) for it in jobs]
    failure = nested(jobset, "spec", "failurePolicy")
    return FailurePolicies(
        max_restarts=None if failure is None else as_int(nested(failure, "maxRestarts"), 0),
        rules=tuple(str(nested(it, "action")) for it in as_list(nested(failure, "rules"))),
        counted=as_int(nested(jobset, "status", "restartsCountTowardsMax"), 0),
        backoff_limits=tuple(sorted({as_int(_backoff_limit(it), USUAL_BACKOFF) for it in specs})),
        restarts_in_place=any(nested(it, "template", "spec", "restartPolicy") != "Never" for it in specs),
        exit_actions=tuple(dict.fromkeys(found for it in specs for found in _exit_action(it))),
        queue=str(nested(jobset, "metadata", "labels", names.KUEUE_QUEUE) or ""),
    )


def _backoff_limit(spec: Json) -> object:
    """Of each index, where there is one for that."""
    each = spec.get("backoffLimitPerIndex")
    return spec.get("backoffLimit") if each is None else each


def _exit_action(spec: Json) -> Iterator[str]:
    """What the first rule of its podFailurePolicy that knows the barrier's exit code does."""
    for rule in as_list(nested(spec, "podFailurePolicy", "rules")):
        if matches_timeout(nested(rule, "onExitCodes")):
            yield str(nested(rule, "action"))
            return
