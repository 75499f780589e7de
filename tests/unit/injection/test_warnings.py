"""A3: what is accepted with a warning in the admission answer."""

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.injection import warnings
from jobset_gate.settings import Barrier, Settings
from tests.fakes.jobsets import Json, changed, created, jobset, replicated

JOB = "spec.replicatedJobs[0].template.spec"


@pytest.mark.parametrize(("deadline", "warned"), [(299, True), (300, True), (301, False), (None, False)])
def test_a_jobs_deadline_not_above_the_gates_timeout(deadline: int | None, warned: bool) -> None:
    found = warnings.warnings(jobset(replicated(job={"activeDeadlineSeconds": deadline})))
    message = [f"{JOB}.activeDeadlineSeconds: {deadline}: ends the pods before the gate's timeout of 300s does"]
    assert found == (message if warned else [])


def rule(action: str = "Ignore", operator: str = "In", values: Any = (124,), container: str | None = None) -> Json:
    exits = {"operator": operator, "values": list(values), "containerName": container}
    return {"podFailurePolicy": {"rules": [{"action": action, "onExitCodes": exits}]}}


@pytest.mark.parametrize(
    ("job", "warned"),
    [
        ({"backoffLimit": 7}, "backoffLimit"),
        ({"backoffLimit": 6}, None),
        ({"backoffLimit": None}, None),
        (rule(), "podFailurePolicy.rules[0]"),
        (rule(container=names.BARRIER_CONTAINER), "podFailurePolicy.rules[0]"),
        (rule(operator="NotIn", values=(1, 2)), "podFailurePolicy.rules[0]"),
        (rule(operator="NotIn", values=(124,)), None),
        (rule(values=(1,)), None),
        (rule(container="main"), None),
        (rule(action="FailJob"), None),
        ({"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": []}]}}, None),
    ],
)
def test_what_would_try_a_gang_that_timed_out_again_and_again(job: Json, warned: str | None) -> None:
    found = warnings.warnings(jobset(replicated(job=job)))
    assert [it.split(": ")[0] for it in found] == ([] if warned is None else [f"{JOB}.{warned}"])


def test_where_no_timeout_can_come_or_the_gate_opens_nothing_is_warned_of() -> None:
    limit, deadline = replicated(job={"backoffLimit": 7} | rule()), replicated(job={"activeDeadlineSeconds": 60})
    other = jobset(limit, replicated("b"), config={"timeoutAfterSeconds": 1, "targetReplicatedJobs": ["b"]})
    opens = jobset(limit, notes={names.ON_TIMEOUT: "Release"})
    for given in (jobset(deadline, config={}), jobset(limit, config={}), opens, other):
        assert warnings.warnings(given) == []


def test_the_operators_limit_is_a_timeout_too_and_a_pods_deadline_counts() -> None:
    job, limited = {"backoffLimit": 7} | rule(), Settings(barrier=Barrier(max_wait_seconds=60))
    assert len(warnings.warnings(jobset(replicated(job=job), config={}), settings=limited)) == 2
    (found,) = warnings.warnings(jobset(replicated(pod={"activeDeadlineSeconds": 60})))
    assert found.startswith(f"{JOB}.template.spec.activeDeadlineSeconds: 60: ")


def test_an_update_repeats_no_warning_and_gives_new_ones() -> None:
    stored = created(jobset(replicated(job={"backoffLimit": 7}), notes={names.ON_TIMEOUT: "Release"}))
    assert warnings.warnings(stored, stored) == []
    fails = changed(stored, "Fail", "metadata", "annotations", names.ON_TIMEOUT)
    assert len(warnings.warnings(fails, stored)) == 1
    assert warnings.warnings(fails, fails) == []
    stored = created(jobset(notes={"jobset-gate.dev/bypas": "true"}))
    more = changed(stored, "true", "metadata", "annotations", "jobset-gate.dev/bypasss")
    assert warnings.warnings(stored, stored) == []
    assert [it.partition("]")[0] for it in warnings.warnings(more, stored)] == [
        "metadata.annotations[jobset-gate.dev/bypasss"
    ]


@pytest.mark.parametrize(
    ("condition", "warned"),
    [
        ({"status": "True", "reason": names.REASON_STARTED}, True),
        ({"status": "False", "reason": names.REASON_TIMED_OUT}, True),
        ({"status": "False", "reason": names.REASON_WAITING}, False),
    ],
)
def test_on_timeout_may_change_until_the_verdict_and_is_warned_about_afterwards(condition: Json, warned: bool) -> None:
    stored = changed(created(jobset()), [{"type": names.CONDITION} | condition], "status", "conditions")
    new = changed(stored, "Release", "metadata", "annotations", names.ON_TIMEOUT)
    assert bool(warnings.warnings(new, stored)) is warned
    assert warnings.warnings(stored, stored) == []


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("jobset-gate.dev/prefetch-image", names.PREFETCH_IMAGES),
        ("jobset-gate.dev/Bypass", names.BYPASS),
        ("jobset-gate.dev/epoch", ""),
        ("jobset-gate.io/on-timeout", names.ON_TIMEOUT),
        ("jobsetgate.dev/on-timeuot", names.ON_TIMEOUT),
        ("jobset-gate.some-company.example.com/bypas", names.BYPASS),
        ("jobset-gate.example.com/owner", None),
        ("example.com/bypass", None),
        *((key, None) for key in (*names.OUR_JOBSET_ANNOTATIONS, names.POD_GROUP_SUSPENDED)),
    ],
)
def test_an_annotation_that_looks_like_ours_is_named_with_what_is_meant(key: str, meant: str | None) -> None:
    """`meant` is empty where there is no suggestion, None where there is no warning."""
    for config in ({"timeoutAfterSeconds": 300}, False):
        found = [it for it in warnings.warnings(jobset(notes={key: "x"}, config=config)) if "unknown" in it]
        message = f"metadata.annotations[{key}]: unknown annotation, without effect on a JobSet"
        hint = f": did you mean {meant}?" if meant else ""
        assert found == ([] if meant is None else [message + hint])


def test_unknown_annotations_fill_no_answer() -> None:
    """An API server cuts a warning at 256 characters, and drops those beyond 4,096 in all."""
    notes = {f"jobset-gate.dev/{'x' * 300}{n}": "x" * 300 for n in range(20)}
    found = warnings.warnings(jobset(notes=notes))
    assert (len(found), max(map(len, found)) <= 256) == (warnings.MOST_UNKNOWN + 1, True)
    assert found[-1] == "metadata.annotations: 15 more unknown annotations of jobset-gate.dev"
