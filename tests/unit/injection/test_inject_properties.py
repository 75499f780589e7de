"""A3 over generated JobSets: twice is once, the manifest again is the stored object, every patch applies cleanly."""

import copy
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from jobset_gate import names
from jobset_gate.injection import inject, validate
from jobset_gate.injection.verify import not_injected
from tests.fakes.jobsets import SETTINGS, Json, applied, created, epoch, jobset, pod_spec, replicated, updated

words = st.sampled_from(["a", "b~1", "c/d", "e"])
texts = st.dictionaries(words, words, max_size=2)
images = st.fixed_dictionaries(
    {"image": st.sampled_from(["a:1", "b", "c:latest"])},
    optional={"imagePullPolicy": st.sampled_from(["Always", "Never"])},
)
containers = st.lists(st.tuples(words, images).map(lambda it: {"name": it[0], **it[1]}), max_size=2)
ours = st.fixed_dictionaries(
    {}, optional={names.BARRIER_IMAGE: st.just("x:1"), names.PREFETCH_IMAGES: st.sampled_from(["true", "false"])}
)
failures = st.just({"rules": [{"action": "FailJobSet"}, {"name": "mine"}]})
claims = st.just([{"templates": []}, {"retentionPolicy": {}}])
amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.sampled_from(["1", "2"]))


@st.composite
def pods(draw: st.DrawFn) -> Json:
    main = draw(images) | {"name": "main", "resources": draw(st.fixed_dictionaries({}, optional={"limits": amounts}))}
    pod: Json = {"containers": [main, *draw(containers)]}
    for key, value in (
        ("initContainers", containers),
        ("volumes", st.lists(words.map(lambda name: {"name": name, "emptyDir": {}}), max_size=2)),
        ("securityContext", st.sampled_from([{}, {"runAsUser": 5}, {"runAsUser": 0}])),
        ("restartPolicy", st.sampled_from(["Never", "OnFailure"])),
        ("nodeSelector", texts),
    ):
        if draw(st.booleans()):
            pod[key] = draw(value)
    return pod


@st.composite
def jobsets(draw: st.DrawFn) -> Json:
    named = draw(st.lists(st.sampled_from(["workers", "b", "c"]), min_size=1, max_size=3, unique=True))
    jobs = []
    for name in named:
        job = replicated(name, pod=draw(pods()))
        if draw(st.booleans()):
            job["template"]["metadata"] = {"labels": draw(texts)}
        if draw(st.booleans()):
            job["template"]["spec"]["template"]["metadata"] = {"annotations": draw(texts)}
        jobs.append(job)
    targets = draw(st.lists(st.sampled_from(named), unique=True))
    made = jobset(*jobs, config={"targetReplicatedJobs": targets} if targets else {"timeoutAfterSeconds": 9})
    made["spec"] |= draw(st.fixed_dictionaries({}, optional={"failurePolicy": failures, "volumeClaimPolicies": claims}))
    notes = draw(texts) | draw(ours)
    if draw(st.booleans()):
        notes[names.CONFIG] = json.dumps(made["spec"].pop("groupSchedulingConfig"))
    if notes:
        made["metadata"]["annotations"] = notes
    if draw(st.booleans()):
        made["spec"]["suspend"] = draw(st.booleans())
    return made


@settings(max_examples=150, deadline=None)
@given(jobsets())
def test_created_twice_is_created_once_and_nothing_is_wrong_with_it(manifest: Json) -> None:
    before = copy.deepcopy(manifest)
    edit = inject.injected(manifest, None, settings=SETTINGS)
    assert applied(manifest, edit.operations) == edit.document
    assert manifest == before
    assert inject.injected(edit.document, None, settings=SETTINGS).operations == []
    assert validate.field_errors(edit.document) == []
    assert not_injected(edit.document, None) == []


@settings(max_examples=150, deadline=None)
@given(jobsets())
def test_the_barrier_runs_last_behind_the_users_init_containers_and_every_image_that_is_to_be_there(
    manifest: Json,
) -> None:
    stored, notes = created(manifest), manifest["metadata"].get("annotations", {})
    for index, job in enumerate(manifest["spec"]["replicatedJobs"]):
        own, init = job["template"]["spec"]["template"]["spec"], _init(stored, index)
        assert init[: len(own.get("initContainers", ()))] == own.get("initContainers", [])
        if any(it["name"] == names.BARRIER_CONTAINER for it in init):
            before, wanted = (
                {(it["image"], it.get("imagePullPolicy")) for it in some} for some in (init[:-1], own["containers"])
            )
            assert init[-1]["name"] == names.BARRIER_CONTAINER
            assert wanted <= before or notes.get(names.PREFETCH_IMAGES) != "true"


@settings(max_examples=150, deadline=None)
@given(jobsets())
def test_the_users_manifest_again_comes_to_the_stored_object(manifest: Json) -> None:
    """`kubectl replace`, twice, and client-side apply, whose merge patch replaces the list of replicatedJobs whole."""
    stored = created(manifest)
    assert validate.field_errors(manifest, stored) == []
    assert inject.injected(copy.deepcopy(stored), stored, settings=SETTINGS).operations == []
    assert updated(manifest, updated(manifest, stored)) == updated(manifest, stored) == stored
    merged = copy.deepcopy(stored) | {"spec": stored["spec"] | manifest["spec"]}
    assert updated(merged, stored) == stored


@settings(max_examples=150, deadline=None)
@given(jobsets(), st.lists(st.tuples(st.booleans(), st.booleans(), st.text(max_size=3)), max_size=8))
def test_epochs_never_fall_and_rise_by_one_with_every_suspension(
    manifest: Json, writes: list[tuple[bool, bool, str]]
) -> None:
    """Each write suspends or resumes, from the stored object or from the manifest, with whatever epoch it likes."""
    stored = created(manifest)
    target = next(i for i in range(3) if any(c["name"] == names.BARRIER_CONTAINER for c in _init(stored, i)))
    counted, suspended = 0, bool(manifest["spec"].get("suspend"))
    for suspend, whole, lie in writes:
        new = copy.deepcopy(stored if whole else manifest)
        new["spec"]["suspend"] = suspend
        meta = new["spec"]["replicatedJobs"][target]["template"]["spec"]["template"].setdefault("metadata", {})
        meta.setdefault("annotations", {})[names.EPOCH] = lie
        stored = updated(new, stored)
        counted += suspend and not suspended
        suspended = suspend
        assert epoch(stored, target) == str(counted)
        assert not_injected(stored, stored) == []


def _init(it: Json, index: int) -> list[Json]:
    jobs = it["spec"]["replicatedJobs"]
    found: list[Json] = pod_spec(it, index).get("initContainers", []) if index < len(jobs) else []
    return found
