"""What users have written about failures in the workload of a gang, for the sentence about its timeout (A7)."""

from collections.abc import Iterator, Sequence
from typing import Any

from jobset_gate import names
from jobset_gate.explain.model import FailurePolicies
from jobset_gate.objects.unstructured import Json, as_int, as_list, as_map, nested

BACKOFF_LIMIT = 6
"""What Kubernetes takes where a Job says nothing."""


def job_policies(job: Json) -> FailurePolicies:
    """Of a Job that is a gang itself, as it is stored."""
    spec = as_map(job.get("spec"))
    return FailurePolicies(
        backoff_limits=(as_int(_backoff_limit(spec), BACKOFF_LIMIT),),
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
        backoff_limits=tuple(sorted({as_int(_backoff_limit(it), BACKOFF_LIMIT) for it in specs})),
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
        codes = nested(rule, "onExitCodes")
        if isinstance(codes, dict) and _is_about(codes):
            yield str(nested(rule, "action"))
            return


def _is_about(codes: dict[str, Any]) -> bool:
    if codes.get("containerName") not in (None, "", names.BARRIER_CONTAINER):
        return False
    return (names.EXIT_TIMED_OUT in as_list(codes.get("values"))) is (codes.get("operator") == "In")
