"""Each field of a JobSet and of a pod in turn with each wrong type: an answer, never an internal error."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.settings import Gangs, Settings
from tests.fakes import jobs, start_groups
from tests.fakes.grouped_pods import pod
from tests.fakes.jobsets import Json, created, dig, jobset, replicated
from tests.fakes.leader_worker_sets import leader_worker_set, template
from tests.fakes.leader_worker_sets import pod as pod_of_a_group
from tests.fakes.wire_objects import owner
from webhook.handlers import Handler, barrier_pod_handler, mutating_handler, pod_handler, validating_handler
from webhook.review import Denied, GroupVersionResource, ReviewRequest

SETTINGS = Settings(gangs=Gangs(sources=("jobset", "job", "lws", "startgroup")))
HANDLERS = (mutating_handler(SETTINGS, lambda: "abcde", lambda: "token"), validating_handler(SETTINGS))
WRONG: list[Any] = [None, True, 10**400, "", [], [None], {}, {"name": {}}, [{"name": []}]]
JOBSETS = GroupVersionResource(names.JOBSET_GROUP, names.JOBSET_VERSION, "jobsets")
JOBS = GroupVersionResource("batch", "v1", "jobs")
LWS = GroupVersionResource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets")
PODS = GroupVersionResource("", "v1", "pods")


def whole() -> Json:
    """A JobSet with a bit of everything that some rule looks at."""
    main = {
        "name": "main",
        "image": "train:1",
        "imagePullPolicy": "Always",
        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    own = {
        "initContainers": [{"name": "own", "image": "own:1", "env": [{"name": "A", "value": "b"}]}],
        "containers": [main],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "os": {"name": "linux"},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "securityContext": {"runAsUser": 7},
        "activeDeadlineSeconds": 7,
    }
    failing = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [124]}}]}
    job = replicated(pod=own, job={"podFailurePolicy": failing, "backoffLimit": 9, "activeDeadlineSeconds": 9})
    spec: Json = {
        "suspend": False,
        "failurePolicy": {"restartStrategy": "Recreate", "rules": [{"action": "FailJobSet"}]},
        "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
        "volumeClaimPolicies": [{"templates": [{"metadata": {"name": "claim"}}]}],
    }
    notes = {names.PREFETCH_IMAGES: "true", names.BARRIER_IMAGE: "busybox", names.ON_TIMEOUT: "Fail"}
    second = replicated("second", dependsOn=[{"name": "third", "status": "Ready"}])
    config = {"timeoutAfterSeconds": 9, "targetReplicatedJobs": ["workers", "second"]}
    made = created(jobset(job, second, replicated("third"), config=config, notes=notes, spec=spec))
    made["status"] = {"conditions": [{"type": names.CONDITION, "status": "True", "reason": names.REASON_TIMED_OUT}]}
    return made


def whole_job() -> Json:
    """The same for a Job: suspended, so that the other one resumes it."""
    owner = {"apiVersion": names.JOBSET_API_VERSION, "kind": "JobSet", "name": "o", "uid": "u", "controller": False}
    pod = dig(whole(), "spec", "replicatedJobs", 0, "template", "spec", "template", "spec")
    spec = {"manualSelector": False, "managedBy": names.JOB_CONTROLLER, "backoffLimit": 9}
    status = {"active": 1, "startTime": "2026-08-01T10:00:00Z", "conditions": [{"type": "Complete", "status": "False"}]}
    notes = {names.PREFETCH_IMAGES: "true"}
    pod = pod | {"initContainers": [], "volumes": []}
    return jobs.stored(suspend=True, notes=notes, pod=pod, spec=spec, status=status, ownerReferences=[owner])


def whole_lws() -> Json:
    """The same for a LeaderWorkerSet with two templates."""
    meta = {"labels": {names.GATED: names.GATED_LWS}, "annotations": {names.CONFIG: "{}"}}
    pod = whole()["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    group = {"restartPolicy": "None", "volumeClaimTemplates": [{"metadata": {"name": "claim"}}]}
    notes = {names.CONFIG: '{"timeoutAfterSeconds": 9}', names.ON_TIMEOUT: "Release"}
    leader, worker = template(meta, **pod | {"initContainers": [], "volumes": []}), template(meta)
    return leader_worker_set(notes=notes, leader=leader, worker=worker, startupPolicy="LeaderCreated", group=group)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*path, key)
        yield from places(member, (*path, key))


@contextmanager
def replaced(document: Any, value: Any, path: tuple[str | int, ...]) -> Iterator[None]:
    parent = dig(document, *path[:-1])
    before, parent[path[-1]] = parent[path[-1]], value
    try:
        yield
    finally:
        parent[path[-1]] = before


def ask(handler: Handler, new: Any, old: Any, resource: GroupVersionResource) -> None:
    """Whatever the answer is, it is no internal error."""
    operation = "CREATE" if old is None else "UPDATE"
    answer = handler(ReviewRequest("uid", operation, resource, namespace="default", object=new, old_object=old))
    assert not isinstance(answer, Denied) or answer.code < 500


def pods_of_groups() -> list[Json]:
    owned = {"ownerReferences": [owner("DaemonSet", "o", "u")]}
    return [pod(way, schedulingGates=[{"name": "theirs"}], meta=dict(owned)) for way in SETTINGS.groups.ways]


def pods_gated_alone() -> list[Json]:
    spec = dig(whole(), "spec", "replicatedJobs", 0, "template", "spec", "template", "spec")
    notes = {names.PREFETCH_IMAGES: "true", names.CONFIG: '{"timeoutAfterSeconds": 9}', names.TOKEN: "t"}
    alone = start_groups.pod("p", owner("Job", "o", "u"), notes=notes, **spec | {"restartPolicy": "OnFailure"})
    return [alone, pod_of_a_group(1, notes=notes)]


Shaped = tuple[Sequence[Handler], GroupVersionResource, list[Json], Json | None]
KINDS: dict[str, Shaped] = {
    "jobset": (HANDLERS, JOBSETS, [whole()], whole()),
    "job": (HANDLERS, JOBS, [whole_job()], jobs.suspended(whole_job(), False)),
    "lws": (HANDLERS, LWS, [whole_lws()], whole_lws()),
    "pod of a group": ([pod_handler(SETTINGS)], PODS, pods_of_groups(), None),
    "pod that is gated alone": ([barrier_pod_handler(SETTINGS, lambda: "token")], PODS, pods_gated_alone(), None),
}
"""Its handlers, objects to spoil, and the other object of an update. The Job that is spoilt is suspended, so that the
good one resumes it."""


@pytest.mark.parametrize("wrong", WRONG, ids=lambda it: repr(it)[:20])
@pytest.mark.parametrize("kind", KINDS)
def test_every_field_may_be_of_any_type(kind: str, wrong: Any) -> None:
    handlers, resource, spoilt, good = KINDS[kind]
    for bad in spoilt:
        updates = [] if good is None else [(bad, good), (good, bad)]
        for place in list(places(bad)):
            with replaced(bad, wrong, place):
                for new, old in ((bad, None), *updates):
                    for handler in handlers:
                        ask(handler, new, old, resource)
