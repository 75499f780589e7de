"""`render` and `validate`: the webhook's answer, without a cluster."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobset_gate import names
from jobset_gate.cli.manifests import mistakes
from jobset_gate.cli.manifests.findings import SKIPPED
from jobset_gate.cli.manifests.jobsets import judge, summary
from jobset_gate.settings import Settings
from tests.fakes.cli_runner import RunCli
from tests.fakes.manifest_texts import train
from tests.repo.files import ROOT

STORY_1, STORY_2 = (str(ROOT / "examples" / name) for name in ("story-1.yaml", "story-2.yaml"))
SERVICE = (
    "apiVersion: v1\nkind: Service\nmetadata:\n  name: s\n  labels:\n    'on': 'yes'\nspec:\n  ports:\n  - port: 80\n"
)
GENERATED = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {generateName: train-}
spec:
  groupSchedulingConfig: {}
  replicatedJobs:
  - name: w
    template: {spec: {template: {spec: {containers: [{name: main, image: x}]}}}}
"""
BROKEN = train(("name: train", "name: broken"), ("300", "0"), ("[workers]", "[workers, nobody]"))


def pod_template(jobset: dict[str, Any], index: int) -> dict[str, Any]:
    found: dict[str, Any] = jobset["spec"]["replicatedJobs"][index]["template"]["spec"]["template"]
    return found


def rendered(run: RunCli, *arguments: str, stdin: str = "") -> list[Any]:
    ran = run("render", *arguments, stdin=stdin)
    assert (ran.code, ran.err) == (0, "")
    return list(yaml.safe_load_all(ran.out))


def test_the_barrier_comes_into_the_templates_of_the_gang_and_into_no_other(run: RunCli) -> None:
    story_1, story_2 = rendered(run, "-f", STORY_1, "-f", STORY_2)
    (job,) = story_1["spec"]["replicatedJobs"]
    (barrier,) = pod_template(story_1, 0)["spec"]["initContainers"]
    assert (job["replicas"], barrier["name"]) == (3, names.BARRIER_CONTAINER)
    limit = str(300 + Settings().barrier.grace_seconds)
    assert {it["name"]: it.get("value") for it in barrier["env"]}[names.ENV_LIMIT] == limit
    assert [it["name"] for it in pod_template(story_1, 0)["spec"]["volumes"]] == [names.VOLUME]
    assert story_1["metadata"]["annotations"] == {names.CONFIG: '{"timeoutAfterSeconds":300}'}
    given = yaml.safe_load(Path(STORY_2).read_text())
    assert story_2["spec"]["replicatedJobs"][1] == given["spec"]["replicatedJobs"][1]
    assert len(pod_template(story_2, 0)["spec"]["initContainers"]) == 1


def test_rendering_what_was_rendered_changes_nothing_as_yaml_and_as_json(run: RunCli) -> None:
    as_json, as_yaml = run("render", "-f", STORY_2, "-o", "json").out, run("render", "-f", STORY_2).out
    assert json.loads(as_json) == yaml.safe_load(as_yaml)
    assert run("render", "-f", "-", stdin=as_yaml).out == as_yaml
    assert run("render", "-f", "-", "-o", "json", stdin=as_json).out == as_json


def test_a_settings_file_changes_the_barrier_and_the_same_manifest_gives_the_same_bytes(
    run: RunCli, tmp_path: Path
) -> None:
    """A stand-in takes the place of the random token, so no secret stands there."""
    file = tmp_path / "s.yaml"
    file.write_text("barrier: {image: mirror.example/busybox:1, graceSeconds: 5, streamUrl: 'http://gate:8082'}")
    first, second = (run("render", "-f", STORY_1, "--config", str(file)).out for _ in range(2))
    assert first == second
    (barrier,) = pod_template(yaml.safe_load(first), 0)["spec"]["initContainers"]
    assert barrier["image"] == "mirror.example/busybox:1"
    values = {it["name"]: it.get("value") for it in barrier["env"]}
    assert values[names.ENV_LIMIT] == "305"
    assert values[names.ENV_STREAM] == f"http://gate:8082/v1/gangs/default/my-jobset/{'x' * 22}"


def test_other_objects_and_other_jobsets_pass_through(run: RunCli) -> None:
    ungated = yaml.safe_load(Path(STORY_1).read_text())
    del ungated["spec"]["groupSchedulingConfig"]
    text = SERVICE + "---\n" + yaml.safe_dump(ungated) + "---\n[1, 2]\n"
    assert rendered(run, "-f", "-", stdin=text) == [yaml.safe_load(SERVICE), ungated, [1, 2]]


@pytest.mark.parametrize("kind", ["List", "JobSetList"])
def test_jobsets_inside_a_list_are_rendered_in_place(run: RunCli, kind: str) -> None:
    inside = [yaml.safe_load(SERVICE), yaml.safe_load(Path(STORY_1).read_text())]
    (found,) = rendered(run, "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": kind, "items": inside}))
    assert found["items"][0] == inside[0]
    assert found["items"][1] == rendered(run, "-f", STORY_1)[0]


def test_a_generated_name_is_completed_with_a_note(run: RunCli) -> None:
    ran = run("render", "-f", "-", stdin=GENERATED)
    jobset = yaml.safe_load(ran.out)
    assert jobset["metadata"]["name"] == "train-xxxxx"
    source = pod_template(jobset, 0)["spec"]["volumes"][0]["projected"]["sources"][0]
    assert source["configMap"]["name"] == names.config_map_name("train-xxxxx")
    assert ran.err.startswith("stdin:4:12: JobSet train- (document 1): warning: metadata.generateName: ")
    assert ran.code == 0


def test_a_refused_jobset_prints_nothing_at_all(run: RunCli) -> None:
    """What is piped into kubectl must not be half of it."""
    ran = run("render", "-f", STORY_1, "-f", "-", stdin=BROKEN)
    assert (ran.code, ran.out) == (1, "")
    assert (
        "stdin:7:5: JobSet broken (document 1): spec.groupSchedulingConfig.timeoutAfterSeconds: 0: must be" in ran.err
    )


def test_validate_says_of_each_document_what_it_is_or_what_is_wrong_where(run: RunCli) -> None:
    ran = run("validate", "-f", "-", "-f", STORY_1, stdin=SERVICE + "---\n" + BROKEN)
    assert ran.code == 1
    for line, begin in zip(
        ran.out.splitlines(),
        (
            f"stdin:1:1: Service s (document 1): {SKIPPED}",
            "stdin:17:5: JobSet broken (document 2): spec.groupSchedulingConfig.timeoutAfterSeconds: 0: ",
            "stdin:18:37: JobSet broken (document 2): spec.groupSchedulingConfig.targetReplicatedJobs[1]: ",
            f"{STORY_1}:1:1: JobSet default/my-jobset (document 1): ok: 300 pods of workers wait for each other",
        ),
        strict=True,
    ):
        assert line.startswith(begin)


def test_warnings_are_not_part_of_the_answer(run: RunCli) -> None:
    text = Path(STORY_1).read_text().replace("backoffLimit: 0", "backoffLimit: 7")
    warning = "stdin:16:11: JobSet default/my-jobset (document 1): warning: spec.replicatedJobs[0]"
    ran = run("validate", "-f", "-", stdin=text)
    first, second = ran.out.splitlines()
    assert (ran.code, second.startswith(warning)) == (0, True)
    assert first.endswith("ok: 300 pods of workers wait for each other, at most 300s")
    ran = run("render", "-f", "-", stdin=text)
    assert (ran.code, ran.err.startswith(warning), "warning" in ran.out) == (0, True, False)


def test_another_version_of_jobset_is_passed_through_with_a_warning(run: RunCli) -> None:
    text = Path(STORY_1).read_text().replace("v1alpha2", "v1alpha1")
    ran = run("render", "-f", "-", stdin=text)
    assert yaml.safe_load(ran.out) == yaml.safe_load(text)
    assert (
        "stdin:1:1: JobSet default/my-jobset (document 1): warning: only jobset.x-k8s.io/v1alpha2 is known" in ran.err
    )


@pytest.mark.parametrize("command", ["render", "validate"])
@pytest.mark.parametrize(
    ("arguments", "stdin", "ending"),
    [
        (["-f", "missing.yaml"], "", (1, "error: missing.yaml: No such file or directory\n")),
        (["-f", "-"], "", (1, "error: no objects in stdin\n")),
        (["-f", STORY_1, "--config", "missing.yaml"], "", (1, "error: missing.yaml: No such file or directory\n")),
        (["--nonsense"], "", (2, "Usage: jobset-gate")),
        ([], "", (2, "error: name a manifest: -f FILE, a folder, or - for standard input\n")),
        (["https://a.example/m.yaml"], "", (2, "error: https://a.example/m.yaml: URLs are not read, since nothing is")),
    ],
)
def test_trouble_with_input(
    run: RunCli, command: str, arguments: list[str], stdin: str, ending: tuple[int, str]
) -> None:
    ran = run(command, *arguments, stdin=stdin)
    code, shown = ending
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(shown)
    assert "Traceback" not in ran.err


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
WHOLE = yaml.safe_load(Path(STORY_2).read_text()) | {"metadata": {"name": "x", "annotations": {names.CONFIG: "{}"}}}


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_oddly_shaped_jobset_brings_the_rules_down(data: st.DataObject) -> None:
    """The API server is not there to refuse the shape first."""
    jobset: dict[str, Any] = copy.deepcopy(WHOLE)
    at: Any = jobset
    key: Any = data.draw(st.sampled_from(sorted(jobset)))
    for _ in range(data.draw(st.integers(0, 9))):
        if not at[key] or not isinstance(at[key], dict | list):
            break
        at = at[key]
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
    at[key] = data.draw(anything)
    outcome = judge(jobset, Settings())
    assert isinstance(outcome.stored, dict)
    assert isinstance(summary(jobset), str)
    assert all(isinstance(str(it.error), str) for it in mistakes.of(jobset))
