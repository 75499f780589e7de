"""When a Job is over: pod failure policy, backoff limit, deadline, completion."""

from __future__ import annotations

import math

from jobset_gate.fake.job.pod_tracker import PodTracker
from jobset_gate.fake.job.pods import JobPod, indexed, size
from jobset_gate.fake.objects import Clock, FakeObject, Json, seconds

DEFAULT_BACKOFF_LIMIT = 6


def action(job: FakeObject, pod: JobPod) -> tuple[str, str]:
    """What the pod failure policy says of a failed pod (Count, Ignore or FailJob), and the message for FailJob."""
    rules = (job.spec.get("podFailurePolicy") or {}).get("rules") or ()
    for number, rule in enumerate(rules):
        why = _matched(rule, pod)
        if why:
            return rule["action"], f"{why} matching {rule['action']} rule at index {number}"
    return "Count", ""


def fatal(job: FakeObject, ledger: PodTracker) -> tuple[str, str] | None:
    """Reason and message if a failed pod fails the Job by policy: any that it knows, also those it deletes itself."""
    for pod in ledger.pods.values():
        if pod.phase == "Failed":
            verdict, message = action(job, pod)
            if verdict == "FailJob":
                return "PodFailurePolicy", message
    return None


def exhausted(job: FakeObject, ledger: PodTracker) -> tuple[str, str] | None:
    """Reason and message if the backoff limit is used up."""
    limit = job.spec.get("backoffLimit", DEFAULT_BACKOFF_LIMIT)
    if ledger.failed > limit or _restarted_too_often(job, ledger, limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    return None


def overdue(job: FakeObject, clock: Clock) -> tuple[float, tuple[str, str] | None]:
    """Seconds until the deadline (0.0: there is none), and reason and message if it is over."""
    deadline, started = job.spec.get("activeDeadlineSeconds"), seconds(job.status.get("startTime"))
    if deadline is None or started is None:
        return 0.0, None
    left = started + deadline - clock()
    if left > 0:
        return left, None
    return 0.0, ("DeadlineExceeded", "Job was active longer than specified deadline")


def complete(job: FakeObject, ledger: PodTracker) -> bool:
    _, completions = size(job)
    if completions is not None:
        return ledger.succeeded >= completions
    return ledger.succeeded > 0 and not ledger.active and not ledger.created


def missing(job: FakeObject, ledger: PodTracker) -> list[int | None]:
    """Indexes of pods to make now, lowest first (None for each pod of a NonIndexed Job)."""
    parallelism, completions = size(job)
    running = len(ledger.active) + len(ledger.created)
    if only_failed_replaced(job):
        running += ledger.terminating
    if not indexed(job) or completions is None:
        return [None for _ in range(_wanted_nonindexed(parallelism, completions, ledger, running) - running)]
    taken = ledger.taken | ledger.completed
    if only_failed_replaced(job):
        taken |= {pod.index for pod in ledger.pods.values() if pod.terminating and pod.index is not None}
    room = max(0, min(parallelism, completions - len(ledger.completed)) - running)
    free: list[int | None] = [index for index in range(completions) if index not in taken]
    return free[:room]


def surplus(job: FakeObject, ledger: PodTracker) -> list[JobPod]:
    """Active pods that the Job no longer asks for: indexes out of range, doubles, and the last of too many."""
    parallelism, completions = size(job)
    last = math.inf if completions is None else completions
    kept: list[JobPod] = []
    dropped: list[JobPod] = []
    indexes: set[int | None] = set()
    for pod in sorted(ledger.active, key=lambda pod: (pod.index or 0, not pod.ready, pod.key)):
        out = indexed(job) and (pod.index in indexes or pod.index in ledger.completed or (pod.index or 0) >= last)
        if out or len(kept) >= parallelism:
            dropped.append(pod)
            continue
        indexes.add(pod.index)
        kept.append(pod)
    return dropped


def only_failed_replaced(job: FakeObject) -> bool:
    """Whether podReplacementPolicy is Failed, which is also the default under a pod failure policy."""
    policy = job.spec.get("podReplacementPolicy") or ("Failed" if job.spec.get("podFailurePolicy") else "")
    return bool(policy == "Failed")


def _wanted_nonindexed(parallelism: int, completions: int | None, ledger: PodTracker, running: int) -> int:
    if completions is None:
        return running if ledger.succeeded else parallelism
    return min(parallelism, completions - ledger.succeeded)


def _restarted_too_often(job: FakeObject, ledger: PodTracker, limit: int) -> bool:
    if job.spec["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(pod.restarts for pod in ledger.pods.values() if pod.phase in ("Pending", "Running"))
    return restarts > 0 if limit == 0 else restarts >= limit


def _matched(rule: Json, pod: JobPod) -> str:
    """Why the rule applies, "" if it does not."""
    if codes := rule.get("onExitCodes"):
        for container, code in pod.exits:
            if code == 0 or codes.get("containerName") not in (None, container):
                continue
            if (code in codes["values"]) == (codes["operator"] == "In"):
                return f"Container {container} for pod {'/'.join(pod.key)} failed with exit code {code}"
    for wanted in rule.get("onPodConditions") or ():
        if (wanted["type"], wanted.get("status", "True")) in pod.conditions:
            return f"Pod {'/'.join(pod.key)} has condition {wanted['type']}"
    return ""
