"""What the controller finds wrong between a group and the start barrier of its pods (G6)."""

from typing import Any

from jobset_gate import names
from jobset_gate.barrier.model import Config, JobSetSeen
from jobset_gate.podgroups import preconditions
from jobset_gate.podgroups.model import Flavor
from jobset_gate.podgroups.snapshot import GroupSnapshot
from tests.fakes.gangs import jobset, replicated_job
from tests.fakes.podgroups.objects import key, pod, pod_group
from tests.fakes.podgroups.snapshots import group_snapshot
from tests.fakes.podgroups.sources import ALIBABA, ALIBABA_MINIMUM, GANG, KEP24, KOORDINATOR, Json

TRAIN = jobset(
    replicated_job(replicas=3, parallelism=4, completions=4),
    replicated_job("driver", parallelism=1, completions=None),
    namespace="team",
)
"""12 pods and 1."""


def looking(*there: JobSetSeen) -> preconditions.JobSetLookup:
    known = {(it.namespace, it.name): it for it in there}
    return lambda namespace, name: known.get((namespace, name))


def of_train(name: str, jobset_name: str = "train", **more: Any) -> Json:
    made = pod(name, **more)
    made["metadata"]["labels"] |= {names.JS_NAME: jobset_name}
    return made


def group(minimum: int | None, *pods: Json, **spec: Any) -> GroupSnapshot:
    said = {} if minimum is None else {"minMember": minimum}
    return group_snapshot(*(pods or (of_train("a"), of_train("b"))), group=pod_group(spec=said | spec))


def test_the_minimum_of_a_pod_group_must_be_what_the_barrier_waits_for() -> None:
    assert preconditions.barrier_hold(group(13), looking(TRAIN)) is None
    for minimum in (12, 14):
        reported = preconditions.barrier_hold(group(minimum), looking(TRAIN))
        assert reported is not None
        assert reported.reason == names.REASON_INVALID_GROUP
        assert reported.message == (
            f"spec.minMember: {minimum}: must equal what the start barrier waits for:"
            f" {minimum} pods here, 13 there (JobSet train)"
        )


def test_it_is_the_targets_that_the_barrier_waits_for() -> None:
    workers = jobset(*TRAIN.replicated_jobs, namespace="team", config=Config(targets=("workers",)))
    assert preconditions.barrier_hold(group(12), looking(workers)) is None
    assert preconditions.barrier_hold(group(13), looking(workers)) is not None


def test_pods_that_wait_in_no_barrier_are_none_of_it() -> None:
    assert preconditions.barrier_hold(group(5), looking()) is None
    assert preconditions.barrier_hold(group(5, pod("a"), pod("b")), looking(TRAIN)) is None
    elsewhere = jobset(*TRAIN.replicated_jobs, namespace="other")
    assert preconditions.barrier_hold(group(5), looking(elsewhere)) is None
    assert preconditions.barrier_timeout_warnings(group(5), looking()) == ()


def test_until_its_jobset_is_seen_a_group_in_a_barrier_waits() -> None:
    """A new leader may see the pods first, and would open it whatever the barrier waits for."""
    pods = [of_train(name) for name in "ab"]
    for it in pods:
        it["metadata"]["labels"] |= {names.GATED: names.GATED_VALUE}
    reported = preconditions.barrier_hold(group(5, *pods), looking())
    assert reported is not None
    assert (reported.reason, reported.message) == (
        names.REASON_GATHERING,
        "its pods also wait in the start barrier of JobSet train, which has not been seen yet",
    )
    assert preconditions.barrier_hold(group(13, *pods), looking(TRAIN)) is None


def test_a_group_of_two_gated_jobsets_can_suit_neither() -> None:
    """Each waits for its own pods, so that no number is right."""
    other = jobset(replicated_job(parallelism=3, completions=3), namespace="team", name="other")
    both = group(16, of_train("a"), of_train("b", "other"))
    reported = preconditions.barrier_hold(both, looking(TRAIN, other))
    assert reported is not None
    assert "(JobSet other)" in reported.message


def test_pods_that_are_gone_bind_nobody() -> None:
    leaving = of_train("a", meta={"deletionTimestamp": "2026-08-01T10:00:00Z"})
    assert preconditions.barrier_hold(group(5, leaving), looking(TRAIN)) is None


def test_without_a_minimum_there_is_nothing_to_compare() -> None:
    assert preconditions.barrier_hold(group(None), looking(TRAIN)) is None


def test_the_minimum_is_reported_where_it_stands() -> None:
    alibaba, koordinator = key(flavor=Flavor.ALIBABA), key(flavor=Flavor.KOORDINATOR)
    said = {ALIBABA: "g", ALIBABA_MINIMUM: "5"}
    label, notes = {KOORDINATOR: "g"}, {f"{GANG}min-available": "5"}
    kep = key(flavor=Flavor.KEP_24)
    seen = {
        f"metadata.labels[{ALIBABA_MINIMUM}]": group_snapshot(of_train("a", of=alibaba, labels=said), of=alibaba),
        f"metadata.annotations[{GANG}min-available]": group_snapshot(
            of_train("a", of=koordinator, labels=label, notes=notes), of=koordinator
        ),
        "spec.minMember": group_snapshot(
            of_train("a", of=koordinator, labels=label),
            of=koordinator,
            group=pod_group(spec={"minMember": 5}),
            api=names.SIGS_GROUP,
        ),
        "spec.minMembers": group_snapshot(
            of_train("a", of=kep, labels={}, notes={KEP24: "g"}), of=kep, group=pod_group(spec={"minMembers": 5})
        ),
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
    patient = jobset(*TRAIN.replicated_jobs, namespace="team", config=Config(timeout=None))
    assert preconditions.barrier_timeout_warnings(group(13, scheduleTimeoutSeconds=300), looking(patient)) == ()
