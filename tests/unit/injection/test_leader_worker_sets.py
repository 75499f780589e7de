"""CREATE and UPDATE of a LeaderWorkerSet: what its templates say to its pods, and what forbids it (K2, K3, K6, K8)."""

import copy

import pytest

from jobset_gate import names
from jobset_gate.injection import inject
from jobset_gate.injection.validate import field_errors
from jobset_gate.injection.verify import not_injected
from jobset_gate.injection.warnings import warnings
from jobset_gate.settings import Barrier, Settings
from tests.fakes.jobsets import Json, applied, changed, without
from tests.fakes.leader_worker_sets import leader_worker_set, template

CONFIG = '{ "timeoutAfterSeconds" : 300 }'
GATED = {names.CONFIG: CONFIG}
RELEASE = {names.ON_TIMEOUT: "Release"}
NO_TIMEOUT = {names.CONFIG: "{}"}
PATIENT = Settings(barrier=Barrier(max_wait_seconds=60))
NOTES = "metadata.annotations"
GROUP = "spec.leaderWorkerTemplate"
MARKS = {"labels": {"jobset-gate.dev/gated": "lws"}, "annotations": {"jobset-gate.dev/group-scheduling-config": CONFIG}}
BARRIER = {"name": names.BARRIER_CONTAINER, "image": "i"}
STATE = [{"name": names.STATE_VOLUME, "emptyDir": {"sizeLimit": "1Mi"}}]
MARKED = ("spec", "leaderWorkerTemplate", "workerTemplate", "metadata", "labels")


def admitted(new: Json, old: Json | None = None, settings: Settings | None = None) -> Json:
    """As it is stored."""
    edit = inject.injected(copy.deepcopy(new), old, settings=settings or Settings(), token="t", suffix="abcde")
    assert applied(new, edit.operations) == edit.document
    assert not_injected(edit.document, old) == []
    return copy.deepcopy(edit.document)


def templates(obj: Json) -> list[Json]:
    group = obj["spec"]["leaderWorkerTemplate"]
    return [group[key] for key in ("leaderTemplate", "workerTemplate") if key in group]


def errors(new: Json, old: Json | None = None, settings: Settings | None = None) -> dict[str, str]:
    found = field_errors(new, old, settings=settings or Settings())
    assert len({it.path for it in found}) == len(found), "each is named once"
    return {it.path: it.message for it in found}


def test_both_templates_get_label_and_annotations_byte_for_byte_and_nothing_else() -> None:
    more = {names.PREFETCH_IMAGES: "true", names.BARRIER_IMAGE: "mirror.local/b:1"}
    live = {names.BYPASS: "false", names.ON_TIMEOUT: "Release", "theirs": "x"}
    given = leader_worker_set(notes=GATED | more | live, leader=template({"labels": {"role": "leader"}}))
    made = admitted(given)
    leader, worker = templates(made)
    annotations = MARKS["annotations"] | more
    assert worker["metadata"] == MARKS | {"annotations": annotations}
    assert leader["metadata"] == {"labels": {"role": "leader"} | MARKS["labels"], "annotations": annotations}
    for it in templates(made):
        it.pop("metadata")
    assert made == without(given, "spec", "leaderWorkerTemplate", "leaderTemplate", "metadata")
    only = changed(leader_worker_set(notes=GATED), None, "spec", "leaderWorkerTemplate", "leaderTemplate")
    for given in (only, leader_worker_set(notes=GATED)):
        assert admitted(given)["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"] == MARKS


def test_another_version_image_and_settings_mark_it_the_same() -> None:
    given = leader_worker_set(notes=GATED)
    made = admitted(given)
    settings = Settings(barrier=Barrier(image="other:2", max_wait_seconds=9, stream_url="http://gate.x.svc:1"))
    for again in (given, made):
        assert admitted(again, made, settings) == made


def test_a_config_may_be_added_changed_and_removed_at_any_time() -> None:
    plain = leader_worker_set(leader=template({"labels": {"role": "leader"}}))
    gated = leader_worker_set(
        notes=GATED | {names.BARRIER_IMAGE: "b:1"}, leader=plain["spec"]["leaderWorkerTemplate"]["leaderTemplate"]
    )
    added = admitted(gated, plain)
    other = changed(added, {names.CONFIG: "{}"}, "metadata", "annotations")
    assert errors(added, plain) == errors(other, added) == {}
    for it in templates(admitted(other, added)):
        assert it["metadata"]["annotations"] == {names.CONFIG: "{}"}, "barrier-image is gone with the LeaderWorkerSet's"
    removed = without(other, "metadata", "annotations")
    assert errors(removed, other) == {}
    assert [it.get("metadata") for it in templates(admitted(removed, other))] == [{"labels": {"role": "leader"}}, {}]


@pytest.mark.parametrize("old", [False, True], ids=["create", "update"])
def test_marks_without_the_config_are_taken_out_of_a_manifest(old: bool) -> None:
    made = admitted(leader_worker_set(notes=GATED | {names.PREFETCH_IMAGES: "true"}))
    copied = changed(made, {"app": "x", "jobset-gate.dev/gated": "lws"}, *MARKED)
    del copied["metadata"]["annotations"]
    (worker,) = templates(admitted(copied, made if old else None))
    assert worker["metadata"] == {"labels": {"app": "x"}}


def test_a_webhook_that_undoes_a_mark_is_found() -> None:
    made = admitted(leader_worker_set(notes=GATED))
    for old in (None, made):
        (error,) = not_injected(without(made, *MARKED, "jobset-gate.dev/gated"), old)
        assert str(error).startswith(
            f'{GROUP}.workerTemplate.metadata.labels[jobset-gate.dev/gated]: null: must be "lws": jobset-gate'
        )
    (error,) = not_injected(without(made, "metadata", "annotations"), made)[:1]
    assert "must not be there" in error.message


ENDLESS = (
    "with it a gang that timed out would restart for ever: set the annotation jobset-gate.dev/on-timeout to Release"
)
AFTER_START = "leaderworkerset.sigs.k8s.io/experimental-recreate-group-after-start"
WORKER, LEADER = f"{GROUP}.workerTemplate.spec", f"{GROUP}.leaderTemplate.spec"
REFUSED: list[tuple[Json, str, str]] = [
    (
        leader_worker_set(notes={names.CONFIG: '{"targetReplicatedJobs": []}'}),
        f"{NOTES}[{names.CONFIG}].targetReplicatedJobs",
        "unknown key; the only key is timeoutAfterSeconds",
    ),
    (
        leader_worker_set(notes=NO_TIMEOUT, startupPolicy="LeaderReady"),
        "spec.startupPolicy",
        "the group could never start: workers are created when the leader is ready, and the leader waits for them",
    ),
    (leader_worker_set(notes=GATED, size=10_001), f"{GROUP}.size", "must be at most 10000"),
    *(
        (leader_worker_set(notes=GATED, group={"restartPolicy": policy}), f"{GROUP}.restartPolicy", ENDLESS)
        for policy in ("None", "Default", "RecreateGroupAfterStart")
    ),
    (leader_worker_set(notes=GATED | {AFTER_START: ""}), f"{NOTES}[{AFTER_START}]", ENDLESS),
    (
        leader_worker_set(notes=GATED, leader=template(containers=[BARRIER])),
        f"{LEADER}.containers[0].name",
        "is reserved",
    ),
    (leader_worker_set(notes=GATED, worker=template(volumes=STATE)), f"{WORKER}.volumes[0].name", "is reserved"),
    (
        leader_worker_set(notes=GATED, group={"volumeClaimTemplates": [{"metadata": {"name": names.VOLUME}}]}),
        f"{GROUP}.volumeClaimTemplates[0].metadata.name",
        "is reserved",
    ),
]


@pytest.mark.parametrize(("given", "path", "sentence"), REFUSED)
def test_what_forbids_a_group_is_named_with_its_path_whenever_it_comes(given: Json, path: str, sentence: str) -> None:
    for old in (None, leader_worker_set(), leader_worker_set(notes=NO_TIMEOUT)):
        found = errors(given, old)
        assert set(found) == {path}
        assert sentence in found[path]
    assert errors(given, given) == {}, "one that was stored while the webhook was off stays editable"
    assert errors(without(given, "metadata", "annotations")) == {}, "without a config nothing is ours to judge"


def test_a_policy_that_keeps_its_pods_is_admitted_where_nothing_times_out_or_the_timeout_releases() -> None:
    keeps = {"restartPolicy": "None"}
    assert errors(leader_worker_set(notes=NO_TIMEOUT, group=keeps)) == {}
    assert errors(leader_worker_set(notes=GATED | RELEASE, group=keeps)) == {}
    assert set(errors(leader_worker_set(notes=NO_TIMEOUT, group=keeps), None, PATIENT)) == {f"{GROUP}.restartPolicy"}
    released, fails = (leader_worker_set(notes=GATED | it, group=keeps) for it in (RELEASE, {}))
    assert set(errors(fails, released)) == {f"{GROUP}.restartPolicy"}, "also when Release is taken away"


def test_what_can_start_and_end_is_admitted() -> None:
    assert errors(leader_worker_set(notes=GATED, size=1, startupPolicy="LeaderReady")) == {}
    assert errors(leader_worker_set(notes=GATED, group={"restartPolicy": "RecreateGroupOnPodRestart"})) == {}
    large = leader_worker_set(notes=GATED, size=10_000, leader=template(), startupPolicy="LeaderCreated")
    assert errors(large) == {}


def test_the_size_of_a_start_group_is_warned_of_once() -> None:
    given = leader_worker_set(notes=GATED | {names.START_SIZE: "3"})
    (size,) = warnings(given)
    assert size == f"{NOTES}[jobset-gate.dev/start-size]: unknown annotation, without effect on a LeaderWorkerSet"
    assert warnings(given, given) == []
