"""A2, A3: what is rejected, with field path and value, all of it at once."""

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.injection import validate
from jobset_gate.settings import Barrier, Settings
from tests.fakes.jobsets import Json, changed, created, jobset, replicated

FIELD = "spec.groupSchedulingConfig"
NOTE = "metadata.annotations[jobset-gate.dev/group-scheduling-config]"
POD = "spec.replicatedJobs[0].template.spec.template.spec"
TEMPLATE = ("spec", "replicatedJobs", 0, "template", "spec", "template")
RANGE = "must be an integer from 1 to 2147483647"


def messages(new: Json, settings: Settings = validate.DEFAULT) -> list[str]:
    return [str(it) for it in validate.field_errors(new, settings=settings)]


def paths(new: Json) -> list[str]:
    return [it.path for it in validate.field_errors(new)]


def targeting(*targets: Any, jobs: tuple[Json, ...] = ()) -> Json:
    return jobset(*jobs, config={"targetReplicatedJobs": list(targets)})


def depends(name: str, *on: str, status: str = "Ready", **more: Any) -> Json:
    return replicated(name, dependsOn=[{"name": it, "status": status} for it in on], **more)


TARGETS = f"{FIELD}.targetReplicatedJobs"
IN_ORDER = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
PAIR = (replicated(), replicated("b"))
ACCEPTED = {
    "least timeout": jobset(config={"timeoutAfterSeconds": 1}),
    "longest timeout": jobset(config={"timeoutAfterSeconds": 2147483647}),
    "nulls": jobset(config={"timeoutAfterSeconds": None, "targetReplicatedJobs": None}),
    "no targets": targeting(),
    "a target": targeting("workers"),
    "the same in other words": jobset(
        notes={names.CONFIG: '{ "timeoutAfterSeconds": 300, "targetReplicatedJobs": [] }'}
    ),
    "the same in another order": jobset(
        *PAIR,
        config={"targetReplicatedJobs": ["b", "workers"]},
        notes={names.CONFIG: '{"targetReplicatedJobs":["workers","b"]}'},
    ),
    "completions null": jobset(replicated(job={"completions": None})),
    "in order, one replicatedJob": jobset(replicated("a"), spec=IN_ORDER),
    "in order, one target": jobset(*PAIR, config={"targetReplicatedJobs": ["b"]}, spec=IN_ORDER),
    "in order, one with pods": jobset(replicated("a"), replicated("b", replicas=0), spec=IN_ORDER),
    "a target after another job": targeting("workers", jobs=(replicated("a"), depends("workers", "a"))),
    "another job after a target": targeting("workers", jobs=(replicated("workers"), depends("a", "workers"))),
    "a target after an empty one": jobset(replicated("a", replicas=0), depends("workers", "a")),
    "a target after a target through an empty job": targeting(
        "workers", "a", jobs=(replicated("a"), depends("empty", "a", replicas=0), depends("workers", "empty"))
    ),
    "a job after itself": jobset(depends("a", "a"), replicated("b")),
    "a target after a circle": targeting(
        "b", "c", jobs=(depends("x", "y"), depends("y", "x"), depends("b", "x"), replicated("c"))
    ),
}


@pytest.mark.parametrize("given", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_can_start_is_accepted(given: Json) -> None:
    assert messages(given) == []


REFUSED = {
    "a config that is a list": (jobset(config=[]), f"{FIELD}: []: must be an object"),
    "targets that are a text": (
        jobset(replicated(pod={"os": {"name": "windows"}}), config={"targetReplicatedJobs": "workers"}),
        f'{TARGETS}: "workers": must be a list of names of replicatedJobs',
    ),
    "a target that is a number": (targeting("workers", 7), f"{TARGETS}[1]: 7: must be the name of a replicatedJob"),
    "a target named twice": (targeting("workers", "workers"), f'{TARGETS}[1]: "workers": is named twice, first at [0]'),
    "a target with a NUL": (targeting("a\x00b"), f'{TARGETS}[0]: "a\\u0000b": no replicatedJob has this name'),
    "a volume claim of our name": (
        jobset(spec={"volumeClaimPolicies": [{"templates": [{"metadata": {"name": "group-scheduling"}}]}]}),
        "spec.volumeClaimPolicies[0].templates[0].metadata.name: ",
    ),
    "no replicatedJobs": (changed(jobset(), [], "spec", "replicatedJobs"), "spec.replicatedJobs: []: the gang would"),
    "a target that waits until another is ready": (
        jobset(replicated("loaders"), depends("workers", "loaders")),
        'spec.replicatedJobs[1].dependsOn: ["loaders"]: the gang can never start: workers -> loaders; ',
    ),
}


@pytest.mark.parametrize(("given", "wanted"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_wrong_is_denied_with_path_and_value(given: Json, wanted: str) -> None:
    (message,) = messages(given)
    assert message.startswith(wanted)


# --- The config's form ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0"), (2147483648, "2147483648"), (300.0, "300.0"), (True, "true"), ({"s": 1}, '{"s":1}')]
)
def test_a_timeout_that_is_no_positive_int32_is_rejected(value: Any, shown: str) -> None:
    assert messages(jobset(config={"timeoutAfterSeconds": value})) == [f"{FIELD}.timeoutAfterSeconds: {shown}: {RANGE}"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("300", ": write 300 (seconds)"),
        ("5m", ": write 300 (seconds)"),
        ("1h30m", ": write 5400 (seconds)"),
        ("1h30", ""),
        ("-5m", ""),
        ("9" * 10_000, ""),
        ("\u0663", ""),
        ("", ""),
    ],
)
def test_a_timeout_in_words_is_rejected_with_its_seconds(text: str, hint: str) -> None:
    (message,) = messages(jobset(config={"timeoutAfterSeconds": text}))
    assert message.endswith(f": {RANGE}{hint}")


def test_an_unknown_key_is_rejected_and_the_known_ones_are_named() -> None:
    assert messages(jobset(config={"timeoutSeconds": 5})) == [
        f"{FIELD}.timeoutSeconds: 5: unknown key; the keys are timeoutAfterSeconds and targetReplicatedJobs"
    ]


def test_an_unknown_target_is_rejected_and_the_known_ones_are_named() -> None:
    given = jobset(replicated(), replicated("auxiliary"), config={"targetReplicatedJobs": ["worker"]})
    assert messages(given) == [
        f'{FIELD}.targetReplicatedJobs[0]: "worker": no replicatedJob has this name; there are: auxiliary, workers'
    ]
    (none,) = messages(changed(targeting("worker"), [], "spec", "replicatedJobs"))
    assert none.endswith("there are: none")
    (many,) = messages(targeting("worker", jobs=tuple(replicated(f"w{index:02}") for index in range(12))))
    assert many.endswith("w08, w09 and 2 more")


# --- The annotation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path", "hint"),
    [
        ("", NOTE, "must be a JSON object"),
        ('{"timeoutAfterSeconds": 300', NOTE, "must be a JSON object"),
        ("[" * 30_000, NOTE, "must be a JSON object"),
        ("[]", NOTE, "must be an object"),
        ('{"timeoutAfterSeconds":NaN}', f"{NOTE}.timeoutAfterSeconds", RANGE),
        ('{"timeout":3}', f"{NOTE}.timeout", "unknown key"),
        ('{"ключ":3}', f"{NOTE}[ключ]", "unknown key"),
        ('{"timeoutAfterSeconds":1,"timeoutAfterSeconds":2}', NOTE, 'the key "timeoutAfterSeconds" is given twice'),
        ('{"targetReplicatedJobs":["x"]}', f"{NOTE}.targetReplicatedJobs[0]", "no replicatedJob has this name"),
    ],
)
def test_a_config_annotation_is_held_to_the_same_rules(text: str, path: str, hint: str) -> None:
    (violation,) = validate.field_errors(jobset(config=False, notes={names.CONFIG: text}))
    assert violation.path == path
    assert hint in violation.message


def test_field_and_annotation_that_differ_are_rejected() -> None:
    (violation,) = messages(jobset(notes={names.CONFIG: '{"timeoutAfterSeconds":5}'}))
    assert violation.startswith(NOTE)
    assert 'differs from spec.groupSchedulingConfig ({"timeoutAfterSeconds":300})' in violation


@pytest.mark.parametrize(
    ("key", "accepted", "refused"),
    [
        (names.BYPASS, ["true", "false"], ["True", True]),
        (names.ON_TIMEOUT, ["Fail", "Release"], ["release"]),
        (names.PREFETCH_IMAGES, ["true"], ["yes"]),
        (names.BARRIER_IMAGE, ["registry.local:5000/busybox@sha256:0f"], ["", "busybox:1 "]),
        ("jobset-gate.dev/another", ["x"], []),
    ],
)
def test_our_annotations_take_only_their_values(key: str, accepted: list[Any], refused: list[Any]) -> None:
    assert [paths(jobset(notes={key: value})) for value in accepted] == [[]] * len(accepted)
    assert [paths(jobset(notes={key: value})) for value in refused] == [[f"metadata.annotations[{key}]"]] * len(refused)


def test_a_jobset_without_a_config_has_no_violations_whatever_it_is() -> None:
    odd = replicated(pod={"containers": [{"name": names.BARRIER_CONTAINER}], "os": {"name": "windows"}})
    assert messages(jobset(odd, config=False, notes={names.BYPASS: "x"})) == []
    assert messages({}) == []


@pytest.mark.parametrize(
    ("key", "entry"),
    [
        ("containers", {"name": "group-scheduling-init", "image": "x"}),
        ("initContainers", {"name": "group-scheduling-init", "image": "x"}),
        ("volumes", {"name": "group-scheduling", "emptyDir": {}}),
        ("containers", {"name": "group-scheduling-prefetch-2", "image": "x"}),
        ("initContainers", {"name": "group-scheduling-prefetch-007", "image": "x"}),
        ("volumes", {"name": "group-scheduling-prefetch", "hostPath": {"path": "/"}}),
        ("volumes", {"name": "group-scheduling-prefetch", "emptyDir": {"sizeLimit": "1Gi"}}),
    ],
)
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("notes", [None, {names.PREFETCH_IMAGES: "true"}], ids=["", "prefetched"])
def test_a_users_own_with_a_reserved_name_is_rejected_in_any_replicated_job(
    key: str, entry: Json, index: int, notes: Json | None
) -> None:
    jobs = [replicated(), replicated("auxiliary")]
    jobs[index]["template"]["spec"]["template"]["spec"][key] = [{"name": "first"}, entry]
    where = f"spec.replicatedJobs[{index}].template.spec.template.spec.{key}[1].name"
    assert messages(jobset(*jobs, config={"targetReplicatedJobs": ["workers"]}, notes=notes)) == [
        f'{where}: "{entry["name"]}": is reserved for jobset-gate\'s start barrier: choose another name'
    ]


def test_our_label_and_a_barrier_left_over_in_a_job_that_is_no_target_are_rejected() -> None:
    """Copied from a stored JobSet, with other targets: it would hold pods that nobody counts."""
    copied = created(jobset(*PAIR))
    del copied["metadata"]["annotations"]
    copied["spec"]["groupSchedulingConfig"] = {"targetReplicatedJobs": ["workers"]}
    assert "spec.replicatedJobs[1].template.spec.template.spec.initContainers[0].name" in paths(copied)
    label = f"metadata.labels[{names.GATED}]"
    wrong = changed(jobset(), {names.GATED: "no"}, *TEMPLATE, "metadata", "labels")
    assert paths(wrong) == [f"spec.replicatedJobs[0].template.spec.template.{label}"]
    stray = changed(targeting("b", jobs=PAIR), {names.GATED: "true"}, *TEMPLATE[:4], "metadata", "labels")
    assert paths(stray) == [f"spec.replicatedJobs[0].template.{label}"]


# --- Platforms, counts, orders --------------------------------------------------------------------------------------


def test_windows_pods_are_rejected_only_as_targets() -> None:
    windows = replicated(pod={"os": {"name": "windows"}})
    assert paths(jobset(windows)) == [f"{POD}.os.name"]
    assert paths(jobset(windows, replicated("b"), config={"targetReplicatedJobs": ["b"]})) == []
    assert paths(jobset(replicated(pod={"os": {"name": "linux"}}))) == []


@pytest.mark.parametrize(
    ("more", "job", "path"),
    [
        ({"replicas": 0}, {}, "spec.replicatedJobs[0].replicas"),
        ({}, {"parallelism": 0}, "spec.replicatedJobs[0].template.spec.parallelism"),
        ({}, {"completions": 0}, "spec.replicatedJobs[0].template.spec.completions"),
    ],
)
def test_a_whole_gang_without_pods_is_rejected_at_create_but_one_with_some_is_not(
    more: Json, job: Json, path: str
) -> None:
    assert messages(jobset(replicated(job=job, **more))) == [
        f"{path}: 0: the gang would have no pods at all: must be at least 1 somewhere"
    ]
    assert messages(jobset(replicated(job=job, **more), replicated("b"))) == []
    named = targeting("workers", "b", jobs=(replicated(job=job, **more), replicated("b")))
    assert messages(named) == [f"{path}: 0: the target would have no pods: must be at least 1"]


def test_several_targets_in_order_are_rejected() -> None:
    (message,) = messages(jobset(replicated("a"), replicated("b"), replicated("c"), spec=IN_ORDER))
    assert message.startswith('spec.startupPolicy.startupPolicyOrder: "InOrder": ')
    assert "a, b, c" in message


def test_a_chain_through_an_untargeted_job_is_rejected_and_named() -> None:
    chain = (replicated("loaders"), depends("proxy", "loaders"), depends("workers", "proxy", status="Complete"))
    (message,) = messages(targeting("workers", "loaders", jobs=chain))
    assert "workers -> proxy -> loaders" in message


IN_PLACE = {"failurePolicy": {"restartStrategy": "InPlaceRestart"}}


def test_restarting_in_place_is_rejected_with_on_timeout_fail() -> None:
    """Where a timeout can come, the gang's or the operator's: else no barrier ever exits with 124."""
    for notes in (None, {names.ON_TIMEOUT: "Fail"}):
        (message,) = messages(jobset(spec=IN_PLACE, notes=notes))
        assert message.startswith('spec.failurePolicy.restartStrategy: "InPlaceRestart": ')
        assert "jobset-gate.dev/on-timeout to Release" in message
    assert messages(jobset(spec=IN_PLACE, notes={names.ON_TIMEOUT: "Release"})) == []
    assert messages(jobset(spec=IN_PLACE, config={})) == []
    assert messages(jobset(spec=IN_PLACE, config={}), settings=Settings(barrier=Barrier(max_wait_seconds=60))) != []
    assert messages(jobset(spec={"failurePolicy": {"restartStrategy": "Recreate"}})) == []
