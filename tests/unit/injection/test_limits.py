"""How large a gated JobSet may be: refused before any rule looks, with the bound, the field path and what was given."""

import json
from base64 import b64decode
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.injection import validate
from jobset_gate.objects import json_patch
from jobset_gate.settings import Settings
from tests.fakes.admission_reviews import UID, body, patched, response
from tests.fakes.jobsets import Json, applied, barrier, changed, created, jobset, pod_spec, replicated
from webhook.handlers import mutating_handler, validating_handler
from webhook.review import decode, encode

MUTATE, VALIDATE = mutating_handler(Settings(), lambda: "abcde", lambda: "token"), validating_handler(Settings())
TARGETS = "targetReplicatedJobs"
CONTAINERS = "spec.replicatedJobs[1].template.spec.template.spec.containers"


def jobs(count: int, pod: Json | None = None) -> list[Json]:
    return [replicated(f"job-{index}", pod=pod) for index in range(count)]


def reason(new: Json, old: Json | None = None) -> list[str]:
    return [str(it) for it in validate.field_errors(new, old)]


def answered(handler: Any, new: Json, old: Json | None = None) -> Json:
    return response(encode(UID, handler(decode(body(new, old)))))


def refused(handler: Any, new: Json, old: Json | None = None) -> str:
    answer = answered(handler, new, old)
    assert answer["allowed"] is False
    message: str = answer["status"]["message"]
    return message


def test_500_replicated_jobs_are_judged_and_501_are_refused() -> None:
    one = {"targetReplicatedJobs": ["job-0"]}
    assert reason(jobset(*jobs(500), config=one)) == []
    assert reason(jobset(*jobs(501), config=one)) == [
        "spec.replicatedJobs: 501: too many: a gated JobSet has at most 500 replicatedJobs"
    ]
    assert answered(MUTATE, jobset(*jobs(501), config=False)) == {"uid": UID, "allowed": True}


def test_500_targets_are_judged_and_501_are_refused_in_field_and_annotation() -> None:
    for count, wanted in ((500, "no replicatedJob has this name"), (501, "501: too many: must be at most 500 targets")):
        config = {TARGETS: [f"t{index}" for index in range(count)]}
        for given, path in (
            (jobset(config=config), f"spec.groupSchedulingConfig.{TARGETS}"),
            (jobset(config=False, notes={names.CONFIG: json.dumps(config)}), f"[{names.CONFIG}].{TARGETS}"),
        ):
            assert path in reason(given)[0]
            assert wanted in reason(given)[0]


def test_500_containers_of_a_template_are_judged_and_501_are_refused() -> None:
    both = {"containers": [{"name": "main", "image": "a"}] * 250, "initContainers": [{"name": "init"}] * 250}
    assert reason(jobset(replicated(), replicated("two", pod=both))) == []
    ours = [{"name": f"{names.PREFETCH_CONTAINER}-{index}"} for index in range(5000)]
    (refusal,) = reason(jobset(replicated(), replicated("two", pod={"initContainers": ours})))
    assert refusal.startswith(f"{CONTAINERS}: 4998: too many"), "bearing our names is not enough"
    both["containers"].append({"name": "main", "image": "a"})
    assert reason(jobset(replicated(), replicated("two", pod=both))) == [
        f"{CONTAINERS}: 501: too many: a gated pod template has at most 500 containers, init containers counted too"
    ]


def test_what_is_put_in_does_not_count_as_the_users() -> None:
    """The validating webhook sees the object with twice as many containers, and two more."""
    mains = [{"name": f"main-{index}", "image": f"image-{index}"} for index in range(500)]
    made = created(jobset(replicated(pod={"containers": mains}), notes={names.PREFETCH_IMAGES: "true"}))
    assert answered(VALIDATE, made)["allowed"] is True


@pytest.mark.parametrize("character", ["x", "é"])
def test_a_config_of_more_than_32_kib_is_refused_with_its_length(character: str) -> None:
    text = json.dumps({"": character * 32 * 1024}, ensure_ascii=False)
    length = len(text.encode())
    assert reason(jobset(config=False, notes={names.CONFIG: text})) == [
        f"metadata.annotations[{names.CONFIG}]: {length}: too long: must be at most 32768 bytes"
    ]
    (refusal,) = reason(jobset(config=json.loads(text)))
    assert refusal.endswith("too long: must be at most 32768 bytes")
    assert refusal.startswith("spec.groupSchedulingConfig: ")


def test_what_would_be_put_in_is_bounded_too() -> None:
    """500 templates of 500 images each would make an answer of 100 MiB."""
    mains = [{"name": f"main-{index}", "image": f"image-{index}"} for index in range(500)]
    given = jobset(*jobs(500, {"containers": mains}), notes={names.PREFETCH_IMAGES: "true"})
    assert refused(MUTATE, given) == (
        "spec.replicatedJobs: 500: too much: what jobset-gate puts into a JobSet is at most 3145728 bytes in all"
    )


def older() -> Json:
    """A gang beyond all bounds, as it may be stored from before there were any."""
    made = created(jobset(*jobs(600), config={TARGETS: ["job-0"], "timeoutAfterSeconds": 300}))
    config = made["spec"]["groupSchedulingConfig"]
    config[TARGETS] = [f"job-{index}" for index in range(600)] + ["job-x" * 20] * 400
    made["metadata"]["annotations"][names.CONFIG] = json.dumps(config)
    pod_spec(made, 1)["containers"] *= 600
    return made


@pytest.mark.parametrize("suspend", [True, False])
def test_an_older_gang_beyond_the_bounds_can_be_suspended_and_resumed(suspend: bool) -> None:
    old = changed(older(), not suspend, "spec", "suspend")
    new = changed(old, suspend, "spec", "suspend")
    assert len(validate.limit_errors(new)) > 2
    answer = encode(UID, MUTATE(decode(body(new, old))))
    assert answered(VALIDATE, patched(new, answer), old)["allowed"] is True


def test_an_older_gang_beyond_the_bounds_keeps_its_barrier() -> None:
    old = older()
    bare = changed(old, [replicated("job-0"), *old["spec"]["replicatedJobs"][1:]], "spec", "replicatedJobs")
    operations = json.loads(b64decode(answered(MUTATE, bare, old)["patch"]))
    assert barrier(applied(bare, operations)) == barrier(old)


def test_an_update_may_not_go_beyond_the_bounds_further_than_the_old_object_nor_than_anybody_can_have_stored() -> None:
    old = older()
    more = changed(old, [*old["spec"]["replicatedJobs"], replicated("more")], "spec", "replicatedJobs")
    assert reason(more, old) == ["spec.replicatedJobs: 601: too many: a gated JobSet has at most 500 replicatedJobs"]
    assert refused(MUTATE, jobset(*jobs(501)), created(jobset())).startswith("spec.replicatedJobs: 501: too many")
    huge = changed(created(jobset()), [{}] * 100_000, "spec", "replicatedJobs")
    for handler in (MUTATE, VALIDATE):
        assert refused(handler, huge, huge).startswith("spec.replicatedJobs: 100000: too many")


def test_words_that_mean_the_same_are_kept_only_as_far_as_the_answer_may_be_long() -> None:
    """A long key above thousands of empty members: each operation would repeat it."""
    key = "k" * 100_000
    where = ("spec", "replicatedJobs", 0, "template", "spec", key)
    old = changed(created(jobset()), [{"metadata": {}}] * 1000, *where)
    answer = answered(MUTATE, changed(old, [{}] * 1000, *where), old)
    assert answer["allowed"] is True
    assert len(b64decode(answer["patch"])) <= json_patch.LARGEST_PATCH
