"""How opened members are taken back: which steps, in which order, and what is never done (G4)."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from jobset_gate import names
from jobset_gate.podgroups import eviction, owners
from jobset_gate.podgroups.eviction import JOB, JOBSET, EvictionPlan, PodProvenance, SuspendTarget
from jobset_gate.podgroups.fit import constraints
from jobset_gate.podgroups.fit.guaranteed import PodShape
from jobset_gate.podgroups.model import Flavor, PodGroupKey, group_label
from jobset_gate.podgroups.snapshot import ControllerRef, MemberPod

KEY = PodGroupKey(flavor=Flavor.ALIBABA, namespace="team", name="ring")
HELD = group_label(KEY)
WANTED = {HELD: 3}
MARK = f"{HELD}.3"
BY = (names.JOB_CONTROLLER_UID,)
PLAIN = PodShape(selection=constraints.pod_node_selection({}), requests={}, count=1)
MAKERS = {
    "Job": ControllerRef(api_version="batch/v1", kind="Job", name="work", uid="job"),
    "ReplicaSet": ControllerRef(api_version="apps/v1", kind="ReplicaSet", name="web", uid="set"),
}


def pod(name: str, maker: str = "Job", **more: Any) -> MemberPod:
    """One that was opened in this generation, and runs."""
    said: dict[str, Any] = {
        "uid": name,
        "namespace": "team",
        "name": name,
        "group_label": HELD,
        "membership": None,
        "shape": PLAIN,
        "controller": MAKERS.get(maker),
        "generation": 3,
        "node": "n",
        "phase": "Running",
    }
    return MemberPod(**(said | more))


HALFWAY: dict[str, Any] = {"deleting": True, "node": ""}
HELD_POD: dict[str, Any] = {"gated": True, "generation": 0, "node": ""}


def root(kind: str = JOB, **more: Any) -> SuspendTarget:
    said = {"kind": kind, "namespace": "team", "name": "work", "uid": "root", "resource_version": "1"}
    return SuspendTarget(**(said | more))


def plan(pods: Iterable[MemberPod], its: SuspendTarget | None = None) -> EvictionPlan:
    """All pods of Jobs are those of that one."""
    made = {it.uid: PodProvenance(target=its, labels=BY) for it in pods if it.controller is MAKERS["Job"]}
    return eviction.plan_eviction(pods, WANTED, made)


def uids(pods: Iterable[MemberPod]) -> list[str]:
    return [it.uid for it in pods]


@pytest.mark.parametrize(
    ("more", "taken"),
    [
        ({}, True),
        ({"node": "", "phase": "Pending"}, True),
        ({"generation": 2}, True),  # one that an earlier roll-back has left
        ({"deleting": True}, True),
        ({"generation": 0}, False),  # opened by another user, or in no group
        ({"gated": True, "generation": 0, "node": "", "phase": "Pending"}, False),
        ({"phase": "Succeeded"}, False),
        ({"phase": "Failed"}, False),
        ({"group_label": "another"}, False),
        ({"controller": None, "generation": 0, "eviction_mark": MARK}, True),
        ({"controller": None, "generation": 0, "eviction_mark": "another.3"}, False),
    ],
)
def test_members_of_the_generation_are_taken_back_bound_or_not(more: dict[str, Any], taken: bool) -> None:
    assert eviction.is_evictable(pod("a", **more), WANTED) is taken


@pytest.mark.parametrize(
    ("text", "said"),
    [(MARK, (HELD, 3)), ("", ("", 0)), ("x", ("", 0)), ("x.y", ("", 0)), (".3", ("", 0)), ("x." + "9" * 5000, ("", 0))],
)
def test_a_mark_is_read_back(text: str, said: tuple[str, int]) -> None:
    assert eviction.parse_mark(text) == said


# --- Which steps -----------------------------------------------------------------------------------------------------


def test_one_that_a_failure_would_end_forgets_every_pod_that_may_run_by_then() -> None:
    unmarked = pod("d", generation=0)  # another user has removed its gate
    gone = [pod("x", deleting=True), pod("y", phase="Succeeded")]
    gated = pod("g", **HELD_POD)
    found = plan([pod("a"), pod("b", node="", phase="Pending"), unmarked, gated, *gone], root(can_fail=True))
    assert [(it.pod.uid, it.labels, it.mark, it.job) for it in found.detaches] == [
        (uid, BY, MARK, "job") for uid in ("a", "b", "d")
    ]
    assert not found.suspends  # it would wait for the ends of pods that it forgets a moment later
    assert uids(found.deletes) == ["a", "b", "d"]
    assert uids(found.terminating) == ["x"]


def test_a_barrier_whose_pods_are_to_be_released_is_marked_first() -> None:
    its = root(JOBSET, can_fail=True, barrier=True)
    assert [(it.target, it.mark) for it in plan([pod("a")], its).marks] == [(its, MARK)]
    for other in ({"barrier": False}, {"can_fail": False}, {"mark": MARK}, {"suspended": True}, {"by_kueue": True}):
        assert not plan([pod("a")], msgspec.structs.replace(its, **other)).marks


def test_a_marked_barrier_is_suspended_once_all_are_gone() -> None:
    its = root(JOBSET, can_fail=True, barrier=True, mark=MARK)
    others = [root(mark="another.3"), root(mark=MARK, finished=True), root(mark=MARK, suspended=True)]
    found = eviction.plan_eviction([], WANTED, {}, [its, *others])
    assert [(it.target, it.mark) for it in found.restarts] == [(its, MARK)]
    assert found.all_gone
    assert not found.done
    assert not eviction.plan_eviction([pod("c", "ReplicaSet")], WANTED, {}, [its]).restarts


def test_what_was_suspended_does_not_wait_for_what_cannot_be_taken_back() -> None:
    """Its new pods are held; and nobody knows when the user takes the others away."""
    its = root(suspended=True, mark=MARK)
    assert eviction.plan_eviction([pod("x", "")], WANTED, {}, [its]).resumes == (its,)
    assert not eviction.plan_eviction([pod("x", ""), pod("c", "ReplicaSet")], WANTED, {}, [its]).resumes
    assert not eviction.plan_eviction([], WANTED, {}, [its]).resumes  # the end is near, and then it is
    assert not eviction.plan_eviction([pod("x", "")], WANTED, {}, [root(suspended=True, mark="another.1")]).resumes


def test_a_jobset_is_not_resumed_before_all_its_jobs_have_heard_of_the_suspension() -> None:
    held = pod("a", jobset="work", **HELD_POD)
    assert uids(plan([held], root(JOBSET, suspended=True, mark=MARK)).terminating) == ["a"]
    assert plan([held], root(JOBSET, suspended=True)).done
    assert plan([held], root(JOBSET, suspended=True, mark="another.1")).done


def test_a_pod_that_was_deleted_halfway_is_deleted_again() -> None:
    """An API server marks a pod before it removes it, and a client that is killed between the two leaves it so."""
    pods = [pod("a", "ReplicaSet", **HALFWAY), pod("b", "ReplicaSet", deleting=True), pod("c", "", **HALFWAY)]
    pods += [pod("d", "", eviction_mark=MARK, **HALFWAY), pod("e", **HALFWAY)]
    found = plan(pods, root(suspended=True, mark=MARK))
    assert uids(found.deletes) == ["a", "d"]
    assert uids(found.terminating) == list("abcde")
    assert not found.disrupts


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"by_kueue": True}, "Job work is suspended and resumed by Kueue"),
        ({"managed_by": "example.com/x"}, "Job work is managed by example.com/x"),
        ({"others": ("z",)}, "pods of Job work are not in the group: z"),
    ],
)
def test_what_must_not_be_suspended_is_blocked_and_the_rest_goes_on(more: dict[str, Any], why: str) -> None:
    for fails in (True, False):
        found = plan([pod("a"), pod("b", deleting=True), pod("w", "ReplicaSet")], root(can_fail=fails, **more))
        assert found.blocked_message == why
        assert found.blocked_pods == ("a",)
        assert not found.suspends
        assert not found.detaches
        assert uids(found.deletes) == ["w"]


def test_a_job_that_finds_its_pods_otherwise_than_by_labels_is_blocked_if_it_could_fail() -> None:
    for fails, why in ((True, "Job work finds its pods by no label"), (False, "")):
        found = eviction.plan_eviction([pod("a")], WANTED, {"a": PodProvenance(target=root(can_fail=fails))})
        assert found.blocked_message == why


@pytest.mark.parametrize(
    "its",
    [
        root(finished=True),
        root(suspended=True),
        root(suspended=True, others=("z",)),
        root(suspended=True, mark=MARK),
        None,
    ],
    ids=["ended", "suspended by its user", "and only partly in the group", "suspended by us", "gone"],
)
def test_pods_that_go_anyway_are_only_waited_for(its: SuspendTarget | None) -> None:
    found = plan([pod("a")], its)
    assert uids(found.terminating) == ["a"]
    assert (found.suspends, found.deletes, found.blocked, found.done) == ((), (), (), False)


def test_the_mark_of_an_earlier_roll_back_is_replaced_or_nobody_would_resume_it() -> None:
    assert [it.mark for it in plan([pod("a")], root(suspended=True, mark=f"{HELD}.2")).suspends] == [MARK]


# --- Reading owners --------------------------------------------------------------------------------------------------


def rules(*actions: str) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": [{"action": it, "onExitCodes": {}} for it in actions]}}


def test_a_job_is_read() -> None:
    meta: dict[str, Any] = {"namespace": "team", "name": "work", "uid": "u", "resourceVersion": "7"}
    meta |= {"labels": {names.KUEUE_QUEUE: "q"}, "annotations": {names.POD_GROUP_SUSPENDED: MARK}}
    spec = {"suspend": True, "managedBy": "example.com/x", **rules("Ignore", "FailJob")}
    seen = owners.read_target(JOB, {"metadata": meta, "spec": spec}, ("z",))
    ours: dict[str, Any] = {"suspended": True, "mark": MARK, "by_kueue": True, "managed_by": "example.com/x"}
    assert seen == root(uid="u", resource_version="7", can_fail=True, others=("z",), **ours)


@pytest.mark.parametrize(
    ("kind", "obj"),
    [
        (JOB, {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}),
        (JOB, {"status": {"conditions": [{"type": "FailureTarget", "status": "True"}]}}),
        (JOBSET, {"status": {"conditions": [{"type": "Completed", "status": "True"}]}}),
        (JOBSET, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    ],
)
def test_an_owner_that_ends_is_over(kind: str, obj: dict[str, Any]) -> None:
    assert owners.read_target(kind, obj).finished
    assert not owners.read_target(kind, {"status": {"conditions": [{"type": "Failed", "status": "False"}]}}).finished


def test_the_usual_controllers_are_no_others() -> None:
    for manager in ("", names.JOB_CONTROLLER, "jobset.sigs.k8s.io/jobset-controller"):
        assert not owners.read_target(JOB, {"spec": {"managedBy": manager}}).managed_by


def test_a_jobset_can_fail_by_the_rules_of_any_of_its_jobs() -> None:
    def jobset(*policies: dict[str, Any]) -> dict[str, Any]:
        return {"spec": {"replicatedJobs": [{"name": "w", "template": {"spec": it}} for it in policies]}}

    assert owners.can_fail_job(JOBSET, jobset({}, rules("FailJob")))
    assert not owners.can_fail_job(JOBSET, jobset({}, rules("Ignore", "Count", "FailIndex")))


@pytest.mark.parametrize(
    ("labels", "by"),
    [
        ({names.JOB_CONTROLLER_UID: "u"}, (names.JOB_CONTROLLER_UID, "controller-uid")),
        ({"controller-uid": "u"}, (names.JOB_CONTROLLER_UID, "controller-uid")),
        ({"own": "x", names.POD_GROUP_LABEL: HELD}, ("own",)),
        ({names.POD_GROUP_LABEL: HELD}, ()),
        ({}, ()),
    ],
)
def test_the_labels_by_which_a_job_knows_its_pods(labels: dict[str, str], by: tuple[str, ...]) -> None:
    job = {"spec": {"selector": {"matchLabels": labels}}}
    assert owners.detach_labels(job) == by
    assert owners.selector(job) == ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
