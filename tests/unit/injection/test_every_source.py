"""What holds for every source alike, with the path of its own pod template (A3, K8)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from jobset_gate import names
from jobset_gate.injection.validate import field_errors
from jobset_gate.injection.warnings import warnings
from jobset_gate.objects.unstructured import Path, format_path
from tests.fakes import leader_worker_sets as lws
from tests.fakes import start_groups
from tests.fakes.jobs import job
from tests.fakes.jobsets import Json, changed, dig, injected, jobset, replicated
from tests.fakes.wire_objects import owner

CONFIG = f"metadata.annotations[{names.CONFIG}]"
NAME, MINIMUM = "gang.scheduling.koordinator.sh/name", "gang.scheduling.koordinator.sh/min-available"
OWNER = owner("StatefulSet", "set", "u")


class Kind(NamedTuple):
    """How one source is written: of its annotations and of members of its pod spec."""

    build: Callable[[Json, Json], Json]
    template: Path
    """Where its pod template stands."""
    word: str
    """What messages call it."""
    pods: int
    """How many wait for each other."""


KINDS = {
    "jobset": Kind(
        lambda notes, pod: jobset(replicated(pod=pod), config=False, notes=notes),
        ("spec", "replicatedJobs", 0, "template", "spec", "template"),
        "JobSet",
        12,
    ),
    "job": Kind(lambda notes, pod: job(config=False, notes=notes, pod=pod), ("spec", "template"), "Job", 4),
    "start group": Kind(lambda notes, pod: start_groups.pod("set-0", OWNER, notes=notes, **pod), (), "StartGroup", 2),
    "lws pod": Kind(lambda notes, pod: lws.pod(notes=notes, **pod), (), "LeaderWorkerSet", 3),
    "lws": Kind(
        lambda notes, pod: lws.leader_worker_set(notes=notes, worker=lws.template(**pod)),
        ("spec", "leaderWorkerTemplate", "workerTemplate"),
        "LeaderWorkerSet",
        3,
    ),
}
"""The last one gets no barrier, its pods do."""
UNLIMITED = {names.CONFIG: "{}"}

every_source = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
rendered = pytest.mark.parametrize("kind", [*KINDS.values()][:-1], ids=[*KINDS][:-1])


@every_source
@pytest.mark.parametrize(
    ("notes", "path", "sentence"),
    [
        ({names.CONFIG: "[]"}, CONFIG, "must be an object with the key"),
        ({names.CONFIG: " " * 40_000}, CONFIG, "too long: must be at most 32768 bytes"),
        ({names.BYPASS: "x"}, f"metadata.annotations[{names.BYPASS}]", 'must be "true" or "false"'),
        ({names.ON_TIMEOUT: "Wait"}, f"metadata.annotations[{names.ON_TIMEOUT}]", 'must be "Fail" or "Release"'),
        ({names.BARRIER_IMAGE: "a b"}, f"metadata.annotations[{names.BARRIER_IMAGE}]", "must be an image reference"),
    ],
)
def test_a_config_or_annotation_that_is_wrong_is_refused(kind: Kind, notes: Json, path: str, sentence: str) -> None:
    (error,) = field_errors(kind.build(UNLIMITED | notes, {}))
    assert error.path == path
    assert sentence in error.message


@every_source
@pytest.mark.parametrize(
    ("pod", "member", "sentence"),
    [
        ({"os": {"name": "windows"}}, ("os", "name"), "the start barrier cannot run in Windows pods"),
        ({"nodeSelector": {"kubernetes.io/os": "windows"}}, ("nodeSelector", "kubernetes.io/os"), "in Windows pods"),
        ({"containers": [{"name": names.BARRIER_CONTAINER}]}, ("containers", 0, "name"), "is reserved"),
        ({"initContainers": [{"name": names.BARRIER_CONTAINER}]}, ("initContainers", 0, "name"), "is reserved"),
        ({"volumes": [{"name": names.VOLUME, "emptyDir": {}}]}, ("volumes", 0, "name"), "is reserved"),
        ({"containers": [{"name": f"c{n}", "image": "i"} for n in range(501)]}, ("containers",), "too many"),
    ],
)
def test_a_pod_that_no_barrier_fits_into_is_refused_with_its_path(
    kind: Kind, pod: Json, member: Path, sentence: str
) -> None:
    (error,) = field_errors(kind.build(UNLIMITED, pod))
    assert error.path == format_path((*kind.template, "spec", *member))
    assert sentence in error.message


@every_source
def test_a_pod_group_must_be_the_gang(kind: Kind) -> None:
    for minimum, accepted in ((kind.pods, True), (kind.pods + 1, False)):
        given = kind.build(UNLIMITED, {})
        for key, value in ((NAME, "g"), (MINIMUM, str(minimum))):
            given = changed(given, value, *kind.template, "metadata", "annotations", key)
        message = f"must equal what the start barrier waits for: {minimum} pods here, {kind.pods} there"
        wanted = {} if accepted else {format_path((*kind.template, "metadata", "annotations", MINIMUM)): message}
        assert {it.path: it.message for it in field_errors(given)} == wanted


@every_source
def test_a_mistyped_annotation_and_a_deadline_before_the_timeout_are_warned_of(kind: Kind) -> None:
    notes = {names.CONFIG: '{"timeoutAfterSeconds": 300}', "jobset-gate.dev/bypas": "true"}
    mistyped, deadline = warnings(kind.build(notes, {"activeDeadlineSeconds": 60}))
    assert mistyped == (
        "metadata.annotations[jobset-gate.dev/bypas]: unknown annotation, without effect on a "
        f"{kind.word}: did you mean jobset-gate.dev/bypass?"
    )
    where = format_path((*kind.template, "spec", "activeDeadlineSeconds"))
    assert deadline == f"{where}: 60: ends the pods before the gate's timeout of 300s does"


@rendered
def test_a_verdict_in_its_template_is_removed_and_the_other_annotations_work(kind: Kind) -> None:
    notes = {names.CONFIG: "{}", names.PREFETCH_IMAGES: "true", names.BARRIER_IMAGE: "mirror.local/busybox:1"}
    given = kind.build(notes, {"containers": [{"name": "main", "image": "train:1"}]})
    for key in (names.VERDICT, names.NUDGE):
        given = changed(given, "release u 0 0 x", *kind.template, "metadata", "annotations", key)
    made: Any = dig(injected(given), *kind.template)
    assert not {names.VERDICT, names.NUDGE} & made["metadata"]["annotations"].keys()
    assert [(it["name"], it["image"]) for it in made["spec"]["initContainers"]] == [
        (names.PREFETCH_CONTAINER, "mirror.local/busybox:1"),
        (f"{names.PREFETCH_CONTAINER}-1", "train:1"),
        (names.BARRIER_CONTAINER, "mirror.local/busybox:1"),
    ]
