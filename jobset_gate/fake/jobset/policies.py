"""What a JobSet's own policies say: startup order and dependencies, success, failure and restarts."""

from __future__ import annotations

import re

from jobset_gate.fake.jobset import conditions
from jobset_gate.fake.jobset.children import Children, job_restarts, replicated_job_of
from jobset_gate.fake.jobset.conditions import StatusDraft
from jobset_gate.fake.jobset.render import replicas
from jobset_gate.fake.objects import FakeObject, Json

_JOB_INDEX = re.compile(r"-(\d+)$")


# --- Startup --------------------------------------------------------------------------------------------------------


def in_order(jobset: FakeObject) -> bool:
    return bool((jobset.spec.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder")


def all_started(replicated_job: Json, status: Json) -> bool:
    """A Job that failed has started too."""
    return bool(replicas(replicated_job) == status["ready"] + status["succeeded"] + status["failed"])


def may_start(replicated_job: Json, jobset: FakeObject, statuses: dict[str, Json]) -> bool:
    """Whether everything that it depends on is as far as it must be."""
    by_name = {job["name"]: job for job in jobset.spec["replicatedJobs"]}
    for needed in replicated_job.get("dependsOn") or ():
        other, status = by_name[needed["name"]], statuses[needed["name"]]
        if needed["status"] == "Complete" and status["succeeded"] != replicas(other):
            return False
        if needed["status"] == "Ready" and not all_started(other, status):
            return False
    return True


def all_ready(jobset: FakeObject, statuses: dict[str, Json]) -> bool:
    wanted = sum(map(replicas, jobset.spec["replicatedJobs"]))
    return bool(wanted == sum(status["ready"] + status["succeeded"] for status in statuses.values()))


# --- Success --------------------------------------------------------------------------------------------------------


def succeeded(jobset: FakeObject, children: Children) -> bool:
    policy = jobset.spec.get("successPolicy") or {"operator": "All"}
    targets = policy.get("targetReplicatedJobs") or [job["name"] for job in jobset.spec["replicatedJobs"]]
    done = sum(replicated_job_of(job) in targets for job in children.successful)
    if policy["operator"] == "Any":
        return done >= 1
    return done >= sum(replicas(job) for job in jobset.spec["replicatedJobs"] if job["name"] in targets)


# --- Failure --------------------------------------------------------------------------------------------------------


def fail_or_restart(jobset: FakeObject, children: Children, draft: StatusDraft) -> None:
    """What the failure policy says about the Jobs that have failed, written into the status."""
    first = min(children.failed, key=lambda job: str(_failure(job).get("lastTransitionTime", "")))
    policy = jobset.spec.get("failurePolicy")
    if policy is None:
        conditions.failed(draft, "FailedJobs", f"a job failed and no policy says otherwise: {first.metadata.name}")
        return
    rule, job = _matching(policy.get("rules") or (), children.failed)
    action = rule["action"] if rule else "RestartJobSet"
    job = job or first
    if action == "FailJobSet":
        conditions.failed(draft, "FailJobSetFailurePolicyAction", f"a rule says so for {job.metadata.name}")
        return
    counts = not action.endswith("IgnoreMaxRestarts")
    if counts and _counted_restarts(jobset) >= policy.get("maxRestarts", 0):
        conditions.failed(draft, "ReachedMaxRestarts", f"no restart is left after the failure of {job.metadata.name}")
        return
    if action.startswith("RestartJobSet"):
        reason = f"FailurePolicy_{rule['name']}" if rule else "DefaultFailurePolicy"
        _restart_all(draft, counts, reason, f"all jobs are recreated after the failure of {job.metadata.name}")
        return
    _restart_one(jobset, draft, job, counts)


def _restart_all(draft: StatusDraft, counts: bool, reason: str, message: str) -> None:
    draft.put("restarts", draft.status.get("restarts", 0) + 1)
    if counts:
        draft.put("restartsCountTowardsMax", draft.status.get("restartsCountTowardsMax", 0) + 1)
    conditions.restarting(draft, reason, message)


def _restart_one(jobset: FakeObject, draft: StatusDraft, job: FakeObject, counts: bool) -> None:
    name = replicated_job_of(job)
    wanted = next(entry for entry in jobset.spec["replicatedJobs"] if entry["name"] == name)
    found = _JOB_INDEX.search(job.metadata.name)
    assert found is not None, job.metadata.name  # noqa: S101  # its name was rendered with an index
    index = int(found[1])
    status = next(entry for entry in draft.status["replicatedJobsStatus"] if entry["name"] == name)
    for field in ("jobRestarts", "jobRestartsCountTowardsMax") if counts else ("jobRestarts",):
        restarts = job_restarts(jobset, name, replicas(wanted), field)
        restarts[index] += 1
        status[field] = restarts
    draft.changed = True


def _counted_restarts(jobset: FakeObject) -> int:
    statuses = jobset.status.get("replicatedJobsStatus", ())
    single = sum(sum(entry.get("jobRestartsCountTowardsMax", ())) for entry in statuses)
    return int(jobset.status.get("restartsCountTowardsMax", 0) + single)


def _matching(rules: list[Json] | tuple[()], failed: list[FakeObject]) -> tuple[Json | None, FakeObject | None]:
    for rule in rules:
        for job in sorted(failed, key=lambda job: str(_failure(job).get("lastTransitionTime", ""))):
            if _applies(rule, job):
                return rule, job
    return None, None


def _applies(rule: Json, job: FakeObject) -> bool:
    failure = _failure(job)
    reasons, patterns = rule.get("onJobFailureReasons"), rule.get("onJobFailureMessagePatterns")
    targets = rule.get("targetReplicatedJobs")
    if reasons and failure.get("reason", "") not in reasons:
        return False
    if patterns and not any(re.search(pattern, failure.get("message", "")) for pattern in patterns):
        return False
    return not targets or replicated_job_of(job) in targets


def _failure(job: FakeObject) -> Json:
    for condition in job.status.get("conditions", ()):
        if condition["type"] == "Failed" and condition["status"] == "True":
            return dict(condition)
    return {}
