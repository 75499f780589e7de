"""A JobSet's own rules about failures, and what else of it only people ask for: JSON -> Policy."""

from collections.abc import Iterator, Sequence
from typing import Any

from jobset_gate import names
from jobset_gate.explained import Policy
from jobset_gate.template import Json, dig, items, mapping, whole

BACKOFF_LIMIT = 6
"""What Kubernetes takes where a Job says nothing."""


def policy(jobset: Json, targets: Sequence[str]) -> Policy:
    """Of the JobSet as it is stored; `targets` are the replicatedJobs of the gang, empty for all."""
    jobs = [it for it in items(dig(jobset, "spec", "replicatedJobs")) if not targets or dig(it, "name") in targets]
    specs = [mapping(dig(it, "template", "spec")) for it in jobs]
    failure = dig(jobset, "spec", "failurePolicy")
    return Policy(
        max_restarts=None if failure is None else whole(dig(failure, "maxRestarts"), 0),
        rules=tuple(str(dig(it, "action")) for it in items(dig(failure, "rules"))),
        counted=whole(dig(jobset, "status", "restartsCountTowardsMax"), 0),
        backoff_limits=tuple(sorted({whole(it.get("backoffLimit"), BACKOFF_LIMIT) for it in specs})),
        restarts_in_place=any(dig(it, "template", "spec", "restartPolicy") != "Never" for it in specs),
        exit_actions=tuple(dict.fromkeys(found for it in specs for found in _exit_action(it))),
        queue=str(dig(jobset, "metadata", "labels", names.KUEUE_QUEUE) or ""),
    )


def _exit_action(spec: Json) -> Iterator[str]:
    """What the first rule of its podFailurePolicy that knows the barrier's exit code does."""
    for rule in items(dig(spec, "podFailurePolicy", "rules")):
        codes = dig(rule, "onExitCodes")
        if isinstance(codes, dict) and _is_about(codes):
            yield str(dig(rule, "action"))
            return


def _is_about(codes: dict[str, Any]) -> bool:
    if codes.get("containerName") not in (None, "", names.BARRIER_CONTAINER):
        return False
    return (names.EXIT_TIMED_OUT in items(codes.get("values"))) is (codes.get("operator") == "In")
