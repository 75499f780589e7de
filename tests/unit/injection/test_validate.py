"""A2, A3: what is rejected, with field path and value, all of it at once."""

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.injection import validate
from jobset_gate.settings import Barrier, Settings
from tests.fakes.jobsets import Json, changed, created, jobset, replicated, without

FIELD = "spec.groupSchedulingConfig"
NOTE = "metadata.annotations[jobset-gate.dev/group-scheduling-config]"
POD = "spec.replicatedJobs[0].template.spec.template.spec"
TEMPLATE = ("spec", "replicatedJobs", 0, "template", "spec", "template")
RANGE = "must be an integer from 1 to 2147483647"


def messages(new: Json, old: Json | None = None, settings: Settings = validate.DEFAULT) -> list[str]:
    return [str(it) for it in validate.field_errors(new, old, settings=settings)]


def paths(new: Json, old: Json | None = None) -> list[str]:
    return [it.path for it in validate.field_errors(new, old)]


# --- The config's form ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"timeoutAfterSeconds": 1},
        {"timeoutAfterSeconds": 2147483647},
        {"timeoutAfterSeconds": None, "targetReplicatedJobs": None},
        {"targetReplicatedJobs": []},
        {"targetReplicatedJobs": ["workers"]},
    ],
)
def test_a_config_in_range_is_accepted(config: Json) -> None:
    assert messages(jobset(config=config)) == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (-1, "-1"),
        (2147483648, "2147483648"),
        (10**30, "1000000000000000000000000000000"),
        (1.5, "1.5"),
        (300.0, "300.0"),
        ("300", '"300"'),
        (True, "true"),
        ([], "[]"),
        ({"s": 1}, '{"s":1}'),
    ],
)
def test_a_timeout_that_is_no_positive_int32_is_rejected(value: Any, shown: str) -> None:
    assert messages(jobset(config={"timeoutAfterSeconds": value})) == [f"{FIELD}.timeoutAfterSeconds: {shown}: {RANGE}"]


@pytest.mark.parametrize("value", ["workers", 7, True, {"workers": 1}])
def test_targets_that_are_no_list_are_rejected(value: Any) -> None:
    (violation,) = messages(jobset(config={"targetReplicatedJobs": value}))
    assert violation.startswith(f"{FIELD}.targetReplicatedJobs: ")
    assert violation.endswith("must be a list of names of replicatedJobs")


@pytest.mark.parametrize("value", [None, 7, "", ["workers"], {}])
def test_a_target_that_is_no_name_is_rejected(value: Any) -> None:
    assert paths(jobset(config={"targetReplicatedJobs": ["workers", value]})) == [f"{FIELD}.targetReplicatedJobs[1]"]


@pytest.mark.parametrize("targets", [[7], [None, ""], "workers"])
def test_where_no_target_can_be_parsed_no_rule_about_targets_applies(targets: Any) -> None:
    """It would be reported for replicatedJobs that nobody means."""
    windows = replicated(pod={"os": {"name": "windows"}})
    found = paths(jobset(windows, config={"targetReplicatedJobs": targets}))
    assert all(path.startswith(f"{FIELD}.targetReplicatedJobs") for path in found)
    assert found


def test_an_unknown_key_is_rejected_and_the_known_ones_are_named() -> None:
    assert messages(jobset(config={"timeoutSeconds": 5})) == [
        f"{FIELD}.timeoutSeconds: 5: unknown key; the keys are timeoutAfterSeconds and targetReplicatedJobs"
    ]


@pytest.mark.parametrize("config", [[], "300", 300, True, ""])
def test_a_config_that_is_no_object_is_rejected(config: Any) -> None:
    assert paths(jobset(config=config)) == [FIELD]


def test_an_unknown_target_is_rejected_and_the_known_ones_are_named() -> None:
    given = jobset(replicated(), replicated("auxiliary"), config={"targetReplicatedJobs": ["worker"]})
    assert messages(given) == [
        f'{FIELD}.targetReplicatedJobs[0]: "worker": no replicatedJob has this name; there are: auxiliary, workers'
    ]


def test_a_target_named_twice_is_rejected() -> None:
    assert messages(jobset(config={"targetReplicatedJobs": ["workers", "workers"]})) == [
        f'{FIELD}.targetReplicatedJobs[1]: "workers": is named twice, first at [0]'
    ]


def test_all_wrong_targets_are_reported() -> None:
    names_ = [f"job-{index}" for index in range(500)]
    assert len(paths(jobset(config={"targetReplicatedJobs": names_}))) == 500


def test_ten_thousand_targets_are_refused_for_their_number() -> None:
    names_ = [f"job-{index}" for index in range(10_000)]
    assert paths(jobset(config={"targetReplicatedJobs": names_})) == [f"{FIELD}.targetReplicatedJobs"]


@pytest.mark.parametrize("target", ["ワーカー", "wörkers", "a\x00b", "😀" * 1000])
def test_unicode_targets_are_denied_like_any_unknown_name(target: str) -> None:
    assert paths(jobset(config={"targetReplicatedJobs": [target]})) == [f"{FIELD}.targetReplicatedJobs[0]"]


def test_all_violations_come_in_one_answer() -> None:
    given = jobset(
        replicated(pod={"containers": [{"name": names.BARRIER_CONTAINER}], "os": {"name": "windows"}}),
        config={"timeoutAfterSeconds": 0, "targetReplicatedJobs": ["workers", "nobody", 7], "extra": 1},
        notes={names.BYPASS: "yes", names.ON_TIMEOUT: "Explode"},
    )
    assert sorted(paths(given)) == sorted(
        [
            f"{FIELD}.timeoutAfterSeconds",
            f"{FIELD}.targetReplicatedJobs[1]",
            f"{FIELD}.targetReplicatedJobs[2]",
            f"{FIELD}.extra",
            "metadata.annotations[jobset-gate.dev/bypass]",
            "metadata.annotations[jobset-gate.dev/on-timeout]",
            f"{POD}.containers[0].name",
            f"{POD}.os.name",
        ]
    )


# --- The annotation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path", "hint"),
    [
        ("", NOTE, "must be a JSON object"),
        ("timeoutAfterSeconds: 300", NOTE, "must be a JSON object"),
        ('{"timeoutAfterSeconds": 300', NOTE, "must be a JSON object"),
        ("[" * 30_000, NOTE, "must be a JSON object"),
        ("[]", NOTE, "must be an object"),
        ("null", NOTE, "must be an object"),
        ('{"timeoutAfterSeconds":0}', f"{NOTE}.timeoutAfterSeconds", RANGE),
        ('{"timeoutAfterSeconds":NaN}', f"{NOTE}.timeoutAfterSeconds", RANGE),
        ('{"timeout":3}', f"{NOTE}.timeout", "unknown key"),
        ('{"timeoutAfterSeconds":1,"timeoutAfterSeconds":2}', NOTE, 'the key "timeoutAfterSeconds" is given twice'),
        ('{"targetReplicatedJobs":["x"]}', f"{NOTE}.targetReplicatedJobs[0]", "no replicatedJob has this name"),
    ],
)
def test_a_config_annotation_is_held_to_the_same_rules(text: str, path: str, hint: str) -> None:
    (violation,) = validate.field_errors(jobset(config=False, notes={names.CONFIG: text}))
    assert violation.path == path
    assert hint in violation.message


def test_a_long_value_is_cut_in_the_message() -> None:
    (violation,) = messages(jobset(config=False, notes={names.CONFIG: "x" * 30_000}))
    assert len(violation) < 500


def test_field_and_annotation_that_differ_are_rejected() -> None:
    (violation,) = messages(jobset(notes={names.CONFIG: '{"timeoutAfterSeconds":5}'}))
    assert violation.startswith(NOTE)
    assert 'differs from spec.groupSchedulingConfig ({"timeoutAfterSeconds":300})' in violation


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"timeoutAfterSeconds": 300}, '{ "timeoutAfterSeconds": 300, "targetReplicatedJobs": null }'),
        ({"targetReplicatedJobs": ["b", "workers"]}, '{"targetReplicatedJobs":["workers","b"]}'),
        ({"targetReplicatedJobs": []}, "{}"),
    ],
)
def test_field_and_annotation_that_mean_the_same_are_accepted(config: Json, text: str) -> None:
    assert messages(jobset(replicated(), replicated("b"), config=config, notes={names.CONFIG: text})) == []


@pytest.mark.parametrize(
    ("key", "value", "accepted"),
    [
        (names.BYPASS, "true", True),
        (names.BYPASS, "false", True),
        (names.BYPASS, "True", False),
        (names.BYPASS, "", False),
        (names.BYPASS, True, False),
        (names.ON_TIMEOUT, "Fail", True),
        (names.ON_TIMEOUT, "Release", True),
        (names.ON_TIMEOUT, "release", False),
        (names.PREFETCH_IMAGES, "true", True),
        (names.PREFETCH_IMAGES, "false", True),
        (names.PREFETCH_IMAGES, "yes", False),
        (names.BARRIER_IMAGE, "registry.local:5000/busybox@sha256:0f", True),
        (names.BARRIER_IMAGE, "", False),
        (names.BARRIER_IMAGE, "busybox:1 ", False),
        (names.BARRIER_IMAGE, "a\nb", False),
        ("jobset-gate.dev/another", "x", True),
    ],
)
def test_our_annotations_take_only_their_values(key: str, value: Any, accepted: bool) -> None:
    found = paths(jobset(notes={key: value}))
    assert found == ([] if accepted else [f"metadata.annotations[{key}]"])


def test_a_jobset_without_a_config_has_no_violations_whatever_it_is() -> None:
    odd = replicated(pod={"containers": [{"name": names.BARRIER_CONTAINER}], "os": {"name": "windows"}})
    assert messages(jobset(odd, config=False, notes={names.BYPASS: "x"})) == []
    assert messages({}) == []


# --- Reserved names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "entry"),
    [
        ("containers", {"name": "group-scheduling-init", "image": "x"}),
        ("initContainers", {"name": "group-scheduling-init", "image": "x"}),
        ("volumes", {"name": "group-scheduling", "emptyDir": {}}),
        ("volumes", {"name": "group-scheduling", "configMap": {"name": "gang-group-scheduling"}}),
    ],
)
@pytest.mark.parametrize("index", [0, 1])
def test_a_users_own_with_a_reserved_name_is_rejected_in_any_replicated_job(key: str, entry: Json, index: int) -> None:
    jobs = [replicated(), replicated("auxiliary")]
    jobs[index]["template"]["spec"]["template"]["spec"][key] = [{"name": "first"}, entry]
    where = f"spec.replicatedJobs[{index}].template.spec.template.spec.{key}[1].name"
    assert messages(jobset(*jobs, config={"targetReplicatedJobs": ["workers"]})) == [
        f'{where}: "{entry["name"]}": is reserved for jobset-gate\'s start barrier: choose another name'
    ]


def test_a_volume_claim_with_the_reserved_name_is_rejected() -> None:
    claims = [{"templates": [{"metadata": {"name": "group-scheduling"}}]}]
    assert paths(jobset(spec={"volumeClaimPolicies": claims})) == [
        "spec.volumeClaimPolicies[0].templates[0].metadata.name"
    ]


def test_what_we_rendered_ourselves_is_no_violation() -> None:
    assert messages(created(jobset(replicated(), replicated("b")))) == []


def test_a_users_own_mount_at_our_path_does_not_clash_since_ours_is_only_in_the_barrier() -> None:
    mounts = [{"name": "v", "mountPath": names.MOUNT_PATH}]
    main = {"name": "main", "image": "x", "volumeMounts": mounts}
    assert messages(jobset(replicated(pod={"containers": [main], "volumes": [{"name": "v", "emptyDir": {}}]}))) == []


def test_our_label_with_another_value_or_on_a_job_that_is_no_target_is_rejected() -> None:
    label = f"metadata.labels[{names.GATED}]"
    wrong = changed(jobset(), {names.GATED: "no"}, *TEMPLATE, "metadata", "labels")
    assert paths(wrong) == [f"spec.replicatedJobs[0].template.spec.template.{label}"]
    given = jobset(replicated(), replicated("b"), config={"targetReplicatedJobs": ["b"]})
    stray = changed(given, {names.GATED: "true"}, "spec", "replicatedJobs", 0, "template", "metadata", "labels")
    assert paths(stray) == [f"spec.replicatedJobs[0].template.{label}"]


def test_a_barrier_left_over_in_a_job_that_is_no_target_is_rejected() -> None:
    """Copied from a stored JobSet, with other targets: it would hold pods that nobody counts."""
    copied = created(jobset(replicated(), replicated("b")))
    del copied["metadata"]["annotations"]
    copied["spec"]["groupSchedulingConfig"] = {"targetReplicatedJobs": ["workers"]}
    found = paths(copied)
    assert "spec.replicatedJobs[1].template.spec.template.spec.initContainers[0].name" in found


# --- Platforms, counts, orders --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        ({"os": {"name": "windows"}}, f"{POD}.os.name"),
        ({"nodeSelector": {"kubernetes.io/os": "windows"}}, f"{POD}.nodeSelector[kubernetes.io/os]"),
    ],
)
def test_windows_pods_are_rejected_only_as_targets(pod: Json, path: str) -> None:
    (violation,) = validate.field_errors(jobset(replicated(pod=pod)))
    assert violation.path == path
    assert "Windows" in violation.message
    assert messages(jobset(replicated(pod=pod), replicated("b"), config={"targetReplicatedJobs": ["b"]})) == []
    assert messages(jobset(replicated(pod={"os": {"name": "linux"}}))) == []


ZEROS = [
    ({"replicas": 0}, {}, "spec.replicatedJobs[0].replicas"),
    ({}, {"parallelism": 0}, "spec.replicatedJobs[0].template.spec.parallelism"),
    ({}, {"completions": 0}, "spec.replicatedJobs[0].template.spec.completions"),
]


@pytest.mark.parametrize(("more", "job", "path"), ZEROS)
def test_a_named_target_without_pods_is_rejected_at_create(more: Json, job: Json, path: str) -> None:
    given = jobset(replicated(job=job, **more), replicated("b"), config={"targetReplicatedJobs": ["workers", "b"]})
    assert messages(given) == [f"{path}: 0: the target would have no pods: must be at least 1"]


@pytest.mark.parametrize(("more", "job", "path"), ZEROS)
def test_a_whole_gang_without_pods_is_rejected_at_create_but_one_with_some_is_not(
    more: Json, job: Json, path: str
) -> None:
    assert messages(jobset(replicated(job=job, **more))) == [
        f"{path}: 0: the gang would have no pods at all: must be at least 1 somewhere"
    ]
    assert messages(jobset(replicated(job=job, **more), replicated("b"))) == []


@pytest.mark.parametrize("jobs", [[], None])
def test_a_gang_of_no_replicated_jobs_is_rejected(jobs: list[Json] | None) -> None:
    assert paths(changed(jobset(), jobs, "spec", "replicatedJobs")) == ["spec.replicatedJobs"]


@pytest.mark.parametrize("job", [{"completions": None}, {"parallelism": None}, {"parallelism": None, "completions": 5}])
def test_counts_that_are_not_given_are_not_zero(job: Json) -> None:
    assert messages(jobset(replicated(job=job))) == []


def test_a_count_of_zero_is_checked_at_create_only() -> None:
    stored = created(jobset())
    shrunk = changed(stored, 0, "spec", "replicatedJobs", 0, "template", "spec", "parallelism")
    assert messages(shrunk, stored) == []


IN_ORDER = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}


def test_several_targets_in_order_are_rejected() -> None:
    (violation,) = validate.field_errors(jobset(replicated("a"), replicated("b"), replicated("c"), spec=IN_ORDER))
    assert (violation.path, violation.value) == ("spec.startupPolicy.startupPolicyOrder", "InOrder")
    assert "a, b, c" in violation.message


@pytest.mark.parametrize(
    "given",
    [
        jobset(replicated("a"), spec=IN_ORDER),
        jobset(replicated("a"), replicated("b"), config={"targetReplicatedJobs": ["b"]}, spec=IN_ORDER),
        jobset(replicated("a"), replicated("b", replicas=0), spec=IN_ORDER),
        jobset(replicated("a"), replicated("b"), spec={"startupPolicy": {"startupPolicyOrder": "AnyOrder"}}),
    ],
)
def test_a_single_target_in_order_is_accepted(given: Json) -> None:
    assert messages(given) == []


def depends(name: str, *on: str, status: str = "Ready", **more: Any) -> Json:
    return replicated(name, dependsOn=[{"name": it, "status": status} for it in on], **more)


@pytest.mark.parametrize("status", ["Ready", "Complete"])
def test_a_target_that_depends_on_another_is_rejected(status: str) -> None:
    given = jobset(replicated("loaders"), depends("workers", "loaders", status=status))
    (violation,) = validate.field_errors(given)
    assert (violation.path, violation.value) == ("spec.replicatedJobs[1].dependsOn", ["loaders"])
    assert "workers -> loaders" in violation.message


def test_a_chain_through_an_untargeted_job_is_rejected_and_named() -> None:
    given = jobset(
        replicated("loaders"),
        depends("proxy", "loaders"),
        depends("workers", "proxy", status="Complete"),
        config={"targetReplicatedJobs": ["workers", "loaders"]},
    )
    (violation,) = validate.field_errors(given)
    assert "workers -> proxy -> loaders" in violation.message


@pytest.mark.parametrize(
    "given",
    [
        jobset(replicated("a"), depends("workers", "a"), config={"targetReplicatedJobs": ["workers"]}),
        jobset(replicated("workers"), depends("a", "workers"), config={"targetReplicatedJobs": ["workers"]}),
        jobset(replicated("a", replicas=0), depends("workers", "a")),
        jobset(
            replicated("a"),
            depends("empty", "a", replicas=0),
            depends("workers", "empty"),
            config={"targetReplicatedJobs": ["workers", "a"]},
        ),
        jobset(depends("a", "a"), replicated("b")),
        jobset(depends("a", "nobody"), replicated("b")),
        jobset(depends("x", "y"), depends("y", "x"), replicated("b"), config={"targetReplicatedJobs": ["b"]}),
        jobset(
            depends("x", "y"),
            depends("y", "x"),
            depends("b", "x"),
            replicated("c"),
            config={"targetReplicatedJobs": ["b", "c"]},
        ),
        jobset(replicated("a", dependsOn="x"), replicated("b", dependsOn=[None, 3, {"name": 5}])),
    ],
)
def test_dependencies_that_hold_no_target_back_behind_another_are_accepted(given: Json) -> None:
    assert messages(given) == []


# --- Restarting in place --------------------------------------------------------------------------------------------

IN_PLACE = {"failurePolicy": {"restartStrategy": "InPlaceRestart"}}


@pytest.mark.parametrize("notes", [None, {names.ON_TIMEOUT: "Fail"}])
def test_restarting_in_place_is_rejected_with_on_timeout_fail(notes: Json | None) -> None:
    (violation,) = validate.field_errors(jobset(spec=IN_PLACE, notes=notes))
    assert (violation.path, violation.value) == ("spec.failurePolicy.restartStrategy", "InPlaceRestart")
    assert "jobset-gate.dev/on-timeout to Release" in violation.message


def test_restarting_in_place_is_accepted_where_no_timeout_can_come() -> None:
    """Neither the gang nor the operator sets one, so no barrier ever exits with 124."""
    assert messages(jobset(spec=IN_PLACE, notes={names.ON_TIMEOUT: "Release"})) == []
    assert messages(jobset(spec=IN_PLACE, config={})) == []
    assert messages(jobset(spec=IN_PLACE, config={}), settings=Settings(barrier=Barrier(max_wait_seconds=60))) != []
    assert messages(jobset(spec={"failurePolicy": {"restartStrategy": "Recreate"}})) == []


def test_turning_on_timeout_back_to_fail_is_rejected_with_restarting_in_place() -> None:
    stored = created(jobset(spec=IN_PLACE, notes={names.ON_TIMEOUT: "Release"}))
    new = changed(stored, "Fail", "metadata", "annotations", names.ON_TIMEOUT)
    assert paths(new, stored) == ["spec.failurePolicy.restartStrategy"]


# --- UPDATE ---------------------------------------------------------------------------------------------------------


def test_the_manifest_again_has_no_violations() -> None:
    given = jobset(replicated(), replicated("b"), config={"targetReplicatedJobs": ["b"]})
    assert messages(given, created(given)) == []


def test_a_changed_config_is_one_violation_that_names_old_and_new() -> None:
    stored = created(jobset())
    new = changed(stored, {"timeoutAfterSeconds": 600}, "spec", "groupSchedulingConfig")
    assert messages(new, stored) == [
        f'{FIELD}: {{"timeoutAfterSeconds":600}}: is immutable; was {{"timeoutAfterSeconds":300}}'
    ]


def test_a_changed_annotation_is_a_violation_too() -> None:
    stored = created(jobset())
    new = changed(stored, "{}", "metadata", "annotations", names.CONFIG)
    assert messages(new, stored) == [f'{NOTE}: "{{}}": is immutable; was {{"timeoutAfterSeconds":300}}']


@pytest.mark.parametrize(
    "config",
    [
        None,
        {"timeoutAfterSeconds": 300},
        {"timeoutAfterSeconds": 300, "targetReplicatedJobs": None},
        {"timeoutAfterSeconds": 300, "targetReplicatedJobs": []},
    ],
)
def test_a_config_that_means_the_same_or_is_absent_is_no_change(config: Json | None) -> None:
    stored = created(jobset())
    assert messages(changed(stored, config, "spec", "groupSchedulingConfig"), stored) == []
    assert messages(without(stored, "metadata", "annotations"), stored) == []


def test_another_form_of_the_same_config_may_be_added() -> None:
    stored = created(jobset(config=False, notes={names.CONFIG: '{"timeoutAfterSeconds":300}'}))
    assert messages(changed(stored, {"timeoutAfterSeconds": 300}, "spec", "groupSchedulingConfig"), stored) == []


def test_a_malformed_new_config_is_reported_as_malformed() -> None:
    stored = created(jobset())
    new = changed(stored, {"timeoutAfterSeconds": 0}, "spec", "groupSchedulingConfig")
    assert messages(new, stored) == [f"{FIELD}.timeoutAfterSeconds: 0: {RANGE}"]


def test_a_config_may_not_be_set_later() -> None:
    stored = created(jobset(config=False))
    new = jobset(notes={names.CONFIG: '{"timeoutAfterSeconds":300}'})
    assert messages(new, stored) == [
        f'{FIELD}: {{"timeoutAfterSeconds":300}}: may only be set when the JobSet is created',
        f'{NOTE}: "{{\\"timeoutAfterSeconds\\":300}}": may only be set when the JobSet is created',
    ]


@pytest.mark.parametrize(
    ("before", "after", "violation"),
    [
        ("x:1", "x:2", '"x:2": is fixed when the JobSet is created; was "x:1"'),
        (None, "x:2", '"x:2": is fixed when the JobSet is created; was not set then'),
        ("x:1", "x:1", None),
        ("x:1", None, None),
    ],
)
def test_the_barrier_image_is_fixed_at_creation(before: str | None, after: str | None, violation: str | None) -> None:
    stored = created(jobset(notes={names.BARRIER_IMAGE: before} if before else None))
    new = jobset(notes={names.BARRIER_IMAGE: after} if after else None)
    path = f"metadata.annotations[{names.BARRIER_IMAGE}]"
    assert messages(new, stored) == ([] if violation is None else [f"{path}: {violation}"])


def test_not_prefetching_may_be_said_later_since_it_changes_nothing() -> None:
    assert messages(jobset(notes={names.PREFETCH_IMAGES: "false"}), created(jobset())) == []
    assert messages(jobset(notes={names.PREFETCH_IMAGES: "true"}), created(jobset())) != []


@pytest.mark.parametrize("key", [names.BYPASS, names.ON_TIMEOUT])
def test_bypass_and_on_timeout_may_change(key: str) -> None:
    stored = created(jobset(notes={names.BYPASS: "false", names.ON_TIMEOUT: "Fail"}))
    value = {names.BYPASS: "true", names.ON_TIMEOUT: "Release"}[key]
    assert messages(changed(stored, value, "metadata", "annotations", key), stored) == []


@pytest.mark.parametrize(("key", "member"), [("initContainers", "image"), ("volumes", "projected")])
def test_a_barrier_that_was_changed_is_a_violation(key: str, member: str) -> None:
    stored = created(jobset())
    new = changed(stored, "other", *TEMPLATE, "spec", key, 0, member)
    assert paths(new, stored) == [f"{POD}.{key}[0]"]


def test_a_users_own_container_in_place_of_the_barrier_is_a_violation() -> None:
    stored = created(jobset())
    new = changed(stored, [{"name": names.BARRIER_CONTAINER, "image": "x"}], *TEMPLATE, "spec", "initContainers")
    assert paths(new, stored) == [f"{POD}.initContainers[0]"]


def test_a_barrier_twice_is_a_violation() -> None:
    stored = created(jobset())
    (ours,) = stored["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["initContainers"]
    new = changed(stored, [ours, ours], *TEMPLATE, "spec", "initContainers")
    assert paths(new, stored) == [f"{POD}.initContainers[1].name"]


def test_a_reserved_name_that_is_added_later_is_a_violation() -> None:
    stored = created(jobset())
    new = changed(stored, [{"name": "m"}, {"name": names.BARRIER_CONTAINER}], *TEMPLATE, "spec", "containers")
    assert paths(new, stored) == [f"{POD}.containers[1].name"]


def test_what_the_old_object_had_already_is_not_held_against_an_update() -> None:
    """Made while the webhook was off: it must stay possible to suspend it, label it, take it away."""
    odd = jobset(
        replicated(pod={"initContainers": [{"name": names.BARRIER_CONTAINER}], "os": {"name": "windows"}}),
        replicated("b"),
        config={"timeoutAfterSeconds": 0, "targetReplicatedJobs": ["nobody"]},
        notes={names.CONFIG: "garbage", names.BYPASS: "x"},
        spec=IN_ORDER,
    )
    assert messages(odd) != []
    assert messages(changed(odd, True, "spec", "suspend"), odd) == []
    assert paths(changed(odd, "y", "metadata", "annotations", names.BYPASS), odd) == [
        f"metadata.annotations[{names.BYPASS}]"
    ]


def test_a_config_that_nobody_can_read_is_immutable_too() -> None:
    odd = jobset(config=False, notes={names.CONFIG: "garbage"})
    new = jobset(config=False, notes={names.CONFIG: "{}"})
    assert messages(new, odd) == [f'{NOTE}: "{{}}": is immutable; was "garbage"']


# --- Anything at all ------------------------------------------------------------------------------------------------

ODD: list[Any] = [None, 3, "x", [], {}, [None], [[]], {"a": None}, True, 1.5]


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize(
    "path",
    [
        ("spec",),
        ("metadata",),
        ("metadata", "annotations"),
        ("spec", "replicatedJobs"),
        ("spec", "replicatedJobs", 0),
        ("spec", "replicatedJobs", 0, "name"),
        ("spec", "replicatedJobs", 0, "replicas"),
        ("spec", "replicatedJobs", 0, "dependsOn"),
        ("spec", "replicatedJobs", 0, "template"),
        ("spec", "replicatedJobs", 0, "template", "spec"),
        ("spec", "replicatedJobs", 0, "template", "spec", "parallelism"),
        TEMPLATE,
        (*TEMPLATE, "metadata"),
        (*TEMPLATE, "spec"),
        (*TEMPLATE, "spec", "os"),
        (*TEMPLATE, "spec", "nodeSelector"),
        (*TEMPLATE, "spec", "initContainers"),
        (*TEMPLATE, "spec", "containers"),
        (*TEMPLATE, "spec", "volumes"),
        ("spec", "startupPolicy"),
        ("spec", "failurePolicy"),
        ("spec", "volumeClaimPolicies"),
    ],
)
def test_a_value_of_the_wrong_type_anywhere_breaks_nothing(path: tuple[str | int, ...], value: Any) -> None:
    good = created(jobset(replicated(), replicated("b")))
    odd = changed(good, value, *path)
    messages(odd)
    messages(odd, good)
    messages(good, odd)
    messages(odd, odd)
