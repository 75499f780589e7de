"""A group whose pods also wait in the start barrier (G6)."""

from typing import Any

from jobset_gate import names
from jobset_gate.barrier.model import Config, WorkloadSeen
from jobset_gate.injection.validate import field_errors
from jobset_gate.injection.warnings import warnings
from jobset_gate.podgroups import preconditions
from jobset_gate.podgroups.model import Flavor, Format
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.settings import Barrier, Groups, Settings
from tests.fakes import gangs
from tests.fakes.grouped_pods import meta_of
from tests.fakes.jobsets import jobset, replicated
from tests.fakes.podgroups.objects import key, pod, pod_group
from tests.fakes.podgroups.snapshots import group_snapshot
from tests.fakes.podgroups.sources import (
    ALIBABA_MINIMUM,
    GANG,
    KEP24,
    KOORDINATOR,
    Json,
    alibaba,
    koordinator,
    problem_lines,
)

POD = "spec.replicatedJobs[{}].template.spec.template.metadata"


def job(name: str = "workers", meta: Json | None = None, *, replicas: int = 3, **more: Any) -> Json:
    """3 x 4 pods of such metadata."""
    made = replicated(name, replicas=replicas, **more)
    if meta is not None:
        made["template"]["spec"]["template"]["metadata"] = meta
    return made


def wanting(minimum: int) -> Json:
    return {"labels": alibaba("g", str(minimum))}


def wrong(*jobs: Json, settings: Settings | None = None, **more: Any) -> list[str]:
    return problem_lines(field_errors(jobset(*jobs, **more), settings=settings or Settings()))


# --- The same pods ----------------------------------------------------------------------------------------------------


def test_the_minimum_must_be_what_the_barrier_waits_for() -> None:
    assert wrong(job(meta=wanting(12))) == []
    assert wrong(job(meta=wanting(5))) == [
        (
            f"{POD.format(0)}.labels[pod-group.scheduling.sigs.k8s.io/min-available]: 5:"
            " must equal what the start barrier waits for: 5 pods here, 12 there"
        )
    ]


def test_pods_that_the_barrier_does_not_wait_for_must_not_be_in_the_group() -> None:
    """Or it could open with them, and without some that the others wait for."""
    config = {"targetReplicatedJobs": ["workers"]}
    assert wrong(job("extra", wanting(12), replicas=1), job(meta=wanting(12)), config=config) == [
        (
            f'{POD.format(1)}.labels[pod-group.scheduling.sigs.k8s.io/name]: "g":'
            " must have the pods that the start barrier waits for: 16 pods name it, 12 are waited for"
        )
    ]


def test_pods_that_the_barrier_waits_for_must_be_in_the_group() -> None:
    """Also where the minimum stands in a PodGroup: no minimum fits."""
    meta = meta_of(Format.SCHEDULER_PLUGINS)
    assert wrong(job(meta=meta)) == []
    assert wrong(job(meta=meta), job("others", replicas=1)) == [
        (
            f'{POD.format(0)}.labels[scheduling.x-k8s.io/pod-group]: "g":'
            " must have the pods that the start barrier waits for: 12 pods name it, 16 are waited for"
        )
    ]
    assert len(wrong(job(meta=meta), job("others", meta_of(Format.SCHEDULER_PLUGINS, "h"), replicas=1))) == 2


def test_two_names_on_a_template_are_refused_before_there_are_pods() -> None:
    meta = {"labels": alibaba("a", "12") | meta_of(Format.SCHEDULER_PLUGINS, "b")["labels"]}
    (said,) = wrong(job(meta=meta))
    assert said.startswith(f'{POD.format(0)}: ["a","b"]: names two groups')


def test_groups_that_nobody_holds_are_none_of_it() -> None:
    for groups in (Groups(enabled=False), Groups(ways=(Format.KEP_24,)), Groups(scheduler_names=("another",))):
        assert wrong(job(meta=wanting(5)), settings=Settings(groups=groups)) == []


def test_a_minimum_that_is_none_is_the_controllers_to_tell() -> None:
    """As on every other pod of a group."""
    assert wrong(job(meta={"labels": alibaba("g", "many")})) == []
    assert wrong(job(meta={"labels": alibaba("", "5")})) == []


def doubts(meta: Json, timeout: int | None, settings: Settings | None = None) -> list[str]:
    config = {} if timeout is None else {"timeoutAfterSeconds": timeout}
    made = jobset(job(meta=meta), config=config)
    return [it for it in warnings(made, settings=settings or Settings()) if "wait limit" in it]


def test_a_jobset_is_warned_where_the_limit_is_known() -> None:
    """One in a PodGroup is the controller's to tell."""
    assert doubts(wanting(12), 601) == doubts(wanting(12), None) == []
    assert doubts(wanting(12), 600) == [
        (
            f"{POD.format(0)}.labels[pod-group.scheduling.sigs.k8s.io/name]: g:"
            " the start barrier's timeout of 600s must be above the group's wait limit of 600s"
        )
    ]
    notes = {"annotations": koordinator(min_available="12", waiting_time="20m")}
    assert len(doubts(notes, 1200)) == 1
    assert doubts(notes, 1201) == []
    assert len(doubts({"annotations": koordinator(min_available="12")}, 600)) == 1
    assert len(doubts(meta_of(Format.KEP_24), 600)) == 1
    assert len(doubts(wanting(12), 1000, Settings(groups=Groups(wait_seconds=1000)))) == 1
    assert len(doubts(wanting(12), None, Settings(barrier=Barrier(max_wait_seconds=300)))) == 1
    assert doubts(meta_of(Format.SCHEDULER_PLUGINS), 1) == doubts(meta_of(Format.KOORDINATOR_POD_GROUP), 1) == []


# --- What the controller finds wrong ----------------------------------------------------------------------------------


TRAIN = gangs.jobset(
    gangs.replicated_job(replicas=3, parallelism=4, completions=4),
    gangs.replicated_job("driver", parallelism=1, completions=None),
    namespace="team",
)
"""12 pods and 1."""


def looking(*there: WorkloadSeen) -> preconditions.JobSetLookup:
    known = {(it.namespace, it.name): it for it in there}
    return lambda namespace, name: known.get((namespace, name))


def of_train(name: str, **more: Any) -> Json:
    made = pod(name, **more)
    made["metadata"]["labels"] |= {names.JS_NAME: "train"}
    return made


def group(minimum: int | None, *pods: Json, **spec: Any) -> GroupSnapshot:
    said = {} if minimum is None else {"minMember": minimum}
    return group_snapshot(*(pods or (of_train("a"), of_train("b"))), group=pod_group(spec=said | spec))


def test_the_minimum_of_a_pod_group_must_be_what_the_barrier_waits_for() -> None:
    assert preconditions.barrier_hold(group(13), looking(TRAIN)) is None
    for minimum in (12, 14):
        words = f"must equal what the start barrier waits for: {minimum} pods here, 13 there (JobSet train)"
        reported = GroupReason(reason=names.REASON_INVALID_GROUP, message=f"spec.minMember: {minimum}: {words}")
        assert preconditions.barrier_hold(group(minimum), looking(TRAIN)) == reported


def test_pods_that_wait_in_no_barrier_are_none_of_it() -> None:
    assert preconditions.barrier_hold(group(5), looking()) is None
    assert preconditions.barrier_hold(group(None), looking(TRAIN)) is None, "nor is there anything to compare"
    assert preconditions.barrier_hold(group(5, pod("a"), pod("b")), looking(TRAIN)) is None
    elsewhere = gangs.jobset(*TRAIN.replicated_jobs, namespace="other")
    assert preconditions.barrier_hold(group(5), looking(elsewhere)) is None
    leaving = of_train("a", meta={"deletionTimestamp": "2026-08-01T10:00:00Z"})
    assert preconditions.barrier_hold(group(5, leaving), looking(TRAIN)) is None
    assert preconditions.barrier_timeout_warnings(group(5), looking()) == ()


def test_until_its_jobset_is_seen_a_group_in_a_barrier_waits() -> None:
    """A new leader may see the pods first, and would open it whatever the barrier waits for."""
    pods = [of_train(name) for name in "ab"]
    for it in pods:
        it["metadata"]["labels"] |= {names.GATED: names.GATED_VALUE}
    words = "its pods also wait in the start barrier of JobSet train, which has not been seen yet"
    reported = GroupReason(reason=names.REASON_GATHERING, message=words)
    assert preconditions.barrier_hold(group(5, *pods), looking()) == reported
    assert preconditions.barrier_hold(group(13, *pods), looking(TRAIN)) is None


def test_the_minimum_is_reported_where_it_stands() -> None:
    kep, koordinator, star = (key(flavor=it) for it in (Flavor.KEP_24, Flavor.KOORDINATOR, Flavor.ALIBABA))
    label, notes = {KOORDINATOR: "g"}, {f"{GANG}min-available": "5"}
    labelled, noted = (
        of_train("a", of=star, labels=alibaba(minimum="5")),
        of_train("a", of=kep, labels={}, notes={KEP24: "g"}),
    )
    annotated = of_train("a", of=koordinator, labels=label, notes=notes)
    named, crd = of_train("a", of=koordinator, labels=label), pod_group(spec={"minMember": 5})
    seen = {
        "spec.minMember": group_snapshot(named, of=koordinator, group=crd, api=names.SIGS_GROUP),
        f"metadata.labels[{ALIBABA_MINIMUM}]": group_snapshot(labelled, of=star),
        f"metadata.annotations[{GANG}min-available]": group_snapshot(annotated, of=koordinator),
        "spec.minMembers": group_snapshot(noted, of=kep, group=pod_group(spec={"minMembers": 5})),
    }
    for path, each in seen.items():
        reported = preconditions.barrier_hold(each, looking(TRAIN))
        assert reported is not None
        assert reported.message.startswith(f"{path}: 5: ")


def test_a_barrier_that_gives_up_first_is_doubted() -> None:
    assert TRAIN.config.timeout == 300
    assert preconditions.barrier_timeout_warnings(group(13, scheduleTimeoutSeconds=299), looking(TRAIN)) == ()
    assert preconditions.barrier_timeout_warnings(group(13, scheduleTimeoutSeconds=300), looking(TRAIN)) == (
        "JobSet train: the start barrier's timeout of 300s must be above the group's wait limit of 300s",
    )
    patient = gangs.jobset(*TRAIN.replicated_jobs, namespace="team", config=Config(timeout=None))
    assert preconditions.barrier_timeout_warnings(group(13, scheduleTimeoutSeconds=300), looking(patient)) == ()
