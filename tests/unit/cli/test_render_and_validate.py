"""`render` and `validate`: the webhook's answer, without a cluster."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobset_gate import names
from jobset_gate.cli.manifests.jobsets import judge, summary
from jobset_gate.fake import manifests
from jobset_gate.settings import Settings
from tests.fakes.cli_runner import RunCli
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
BROKEN = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: broken
spec:
  groupSchedulingConfig:
    timeoutAfterSeconds: 0
    targetReplicatedJobs:
    - workers
    - nobody
    - workers
    tiemout: 5
  replicatedJobs:
  - name: workers
    template:
      spec:
        template:
          spec:
            nodeSelector:
              kubernetes.io/os: windows
            containers:
            - name: group-scheduling-init
              image: x
"""
POD = "replicatedJobs[0].template.spec.template.spec"
BROKEN_AT = [
    (7, "groupSchedulingConfig.timeoutAfterSeconds: 0"),
    (10, 'groupSchedulingConfig.targetReplicatedJobs[1]: "nobody"'),
    (11, 'groupSchedulingConfig.targetReplicatedJobs[2]: "workers"'),
    (12, "groupSchedulingConfig.tiemout: 5"),
    (20, f'{POD}.nodeSelector[kubernetes.io/os]: "windows"'),
    (22, f'{POD}.containers[0].name: "group-scheduling-init"'),
]
"""Line and field of all that is wrong."""


def pod_template(jobset: dict[str, Any], index: int) -> dict[str, Any]:
    found: dict[str, Any] = jobset["spec"]["replicatedJobs"][index]["template"]["spec"]["template"]
    return found


def rendered(run: RunCli, *arguments: str, stdin: str = "") -> list[Any]:
    ran = run("render", *arguments, stdin=stdin)
    assert (ran.code, ran.err) == (0, "")
    return list(yaml.safe_load_all(ran.out))


def test_story_1_gets_the_barrier_into_its_one_template_of_three_jobs(run: RunCli) -> None:
    (jobset,) = rendered(run, "-f", STORY_1)
    (job,) = jobset["spec"]["replicatedJobs"]
    (barrier,) = pod_template(jobset, 0)["spec"]["initContainers"]
    assert job["replicas"] == 3
    assert barrier["name"] == names.BARRIER_CONTAINER
    assert {it["name"]: it.get("value") for it in barrier["env"]}[names.ENV_LIMIT] == str(
        300 + Settings().barrier.grace_seconds
    )
    assert [it["name"] for it in pod_template(jobset, 0)["spec"]["volumes"]] == [names.VOLUME]
    assert jobset["metadata"]["annotations"] == {names.CONFIG: '{"timeoutAfterSeconds":300}'}


def test_story_2_leaves_the_auxiliary_job_as_it_is(run: RunCli) -> None:
    (jobset,) = rendered(run, "-f", STORY_2)
    given = yaml.safe_load(Path(STORY_2).read_text())
    assert jobset["spec"]["replicatedJobs"][1] == given["spec"]["replicatedJobs"][1]
    assert len(pod_template(jobset, 0)["spec"]["initContainers"]) == 1


def test_rendering_what_was_rendered_changes_nothing(run: RunCli) -> None:
    once = run("render", "-f", STORY_2).out
    assert run("render", "-f", "-", stdin=once).out == once


def test_what_comes_in_as_json_is_rendered_the_same(run: RunCli) -> None:
    as_json = run("render", "-f", STORY_1, "-o", "json").out
    assert json.loads(as_json) == rendered(run, "-f", STORY_1)[0]
    assert run("render", "-f", "-", "-o", "json", stdin=as_json).out == as_json


def test_other_objects_and_other_jobsets_pass_through(run: RunCli) -> None:
    ungated = yaml.safe_load(Path(STORY_1).read_text())
    del ungated["spec"]["groupSchedulingConfig"]
    text = SERVICE + "---\n" + yaml.safe_dump(ungated) + "---\n[1, 2]\n"
    assert rendered(run, "-f", "-", stdin=text) == [yaml.safe_load(SERVICE), ungated, [1, 2]]


def test_several_files_come_out_in_their_order(run: RunCli, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SERVICE)
    found = rendered(run, "-f", str(tmp_path / "s.yaml"), "-f", STORY_1)
    assert [it["kind"] for it in found] == ["Service", "JobSet"]


@pytest.mark.parametrize("kind", ["List", "JobSetList"])
def test_jobsets_inside_a_list_are_rendered_in_place(run: RunCli, kind: str) -> None:
    inside = [yaml.safe_load(SERVICE), yaml.safe_load(Path(STORY_1).read_text())]
    (found,) = rendered(run, "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": kind, "items": inside}))
    assert found["items"][0] == inside[0]
    assert found["items"][1] == rendered(run, "-f", STORY_1)[0]


def test_a_generated_name_is_completed_and_that_is_said(run: RunCli) -> None:
    ran = run("render", "-f", "-", stdin=GENERATED)
    jobset = yaml.safe_load(ran.out)
    assert jobset["metadata"]["name"] == "train-xxxxx"
    source = pod_template(jobset, 0)["spec"]["volumes"][0]["projected"]["sources"][0]
    assert source["configMap"]["name"] == names.config_map_name("train-xxxxx")
    assert ran.err.startswith("stdin:4: JobSet train- (document 1): warning: metadata.generateName: ")
    assert ran.code == 0


def test_a_stand_in_takes_the_place_of_the_random_token(run: RunCli, tmp_path: Path) -> None:
    """The same manifest gives the same bytes, and no secret stands in them."""
    (tmp_path / "settings.yaml").write_text("barrier: {streamUrl: 'http://gate:8082'}")
    asked = ("render", "-f", STORY_1, "--config", str(tmp_path / "settings.yaml"))
    first, second = run(*asked), run(*asked)
    assert first.out == second.out
    assert f"value: http://gate:8082/v1/gangs/default/my-jobset/{'x' * 22}\n" in first.out


def test_warnings_go_to_standard_error(run: RunCli) -> None:
    text = Path(STORY_1).read_text().replace("backoffLimit: 0", "backoffLimit: 7")
    ran = run("render", "-f", "-", stdin=text)
    assert ran.code == 0
    assert "stdin:16: JobSet default/my-jobset (document 1): warning: spec.replicatedJobs[0]" in ran.err
    assert "warning" not in ran.out


def test_a_settings_file_changes_the_barrier(run: RunCli, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("barrier:\n  image: mirror.example/busybox:1\n  graceSeconds: 5\n")
    (jobset,) = rendered(run, "-f", STORY_1, "--config", str(tmp_path / "s.yaml"))
    (barrier,) = pod_template(jobset, 0)["spec"]["initContainers"]
    assert barrier["image"] == "mirror.example/busybox:1"
    assert {it["name"]: it.get("value") for it in barrier["env"]}[names.ENV_LIMIT] == "305"


def test_a_refused_jobset_prints_nothing_at_all(run: RunCli) -> None:
    """What is piped into kubectl must not be half of it."""
    ran = run("render", "-f", STORY_1, "-f", "-", stdin=BROKEN)
    assert (ran.code, ran.out) == (1, "")
    assert "stdin:7: JobSet broken (document 1): spec.groupSchedulingConfig.timeoutAfterSeconds: 0: must be" in ran.err


def test_validate_tells_every_violation_of_every_document_with_its_line(run: RunCli, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(SERVICE + "---\n" + BROKEN + "---\n" + BROKEN.replace("broken", "too"))
    ran = run("validate", "-f", str(file), "-f", STORY_1)
    lines = [line.removeprefix(str(file)) for line in ran.out.splitlines()]
    assert ran.code == 1
    assert lines[0] == ":1: Service s (document 1): neither a JobSet nor part of a group, not looked at"
    assert lines[-1].endswith("my-jobset (document 1): ok: 300 pods of workers wait for each other, at most 300s")
    begin, length = SERVICE.count("\n") + 1, BROKEN.count("\n") + 1
    for line, path in BROKEN_AT:
        shown = (
            f":{begin + line}: JobSet broken (document 2): spec.{path}: ",
            f":{begin + length + line}: JobSet too (document 3): spec.{path}: ",
        )
        for start in shown:
            assert [it for it in lines if it.startswith(start)], (start, lines)
    assert len(lines) == 2 + 2 * len(BROKEN_AT)


def test_validate_looks_into_lists_and_names_the_item(run: RunCli) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(SERVICE), yaml.safe_load(BROKEN)]}
    ran = run("validate", "-f", "-", stdin=yaml.safe_dump(listed, sort_keys=False))
    assert ran.code == 1
    assert "JobSet broken (document 1, items[1]): spec.groupSchedulingConfig.timeoutAfterSeconds: 0: " in ran.out
    line = yaml.safe_dump(listed, sort_keys=False).split("timeoutAfterSeconds")[0].count("\n") + 1
    assert f"stdin:{line}: JobSet broken (document 1, items[1]): spec.groupSchedulingConfig.timeout" in ran.out


def test_validate_of_good_jobsets_exits_with_0_and_shows_warnings(run: RunCli) -> None:
    text = Path(STORY_1).read_text().replace("backoffLimit: 0", "backoffLimit: 7")
    ran = run("validate", "-f", "-", stdin=text)
    assert ran.code == 0
    first, second = ran.out.splitlines()
    assert first.endswith("ok: 300 pods of workers wait for each other, at most 300s")
    assert "warning: spec.replicatedJobs[0].template.spec.backoffLimit" in second


def test_a_gate_as_an_annotation_in_json_is_judged_too(run: RunCli) -> None:
    jobset = yaml.safe_load(Path(STORY_1).read_text())
    del jobset["spec"]["groupSchedulingConfig"]
    jobset["metadata"]["annotations"] = {names.CONFIG: '{"timeoutAfterSeconds": -1}'}
    ran = run("validate", "-f", "-", stdin=json.dumps(jobset))
    assert ran.code == 1
    assert f"metadata.annotations[{names.CONFIG}].timeoutAfterSeconds: -1: must be" in ran.out


def test_another_version_of_jobset_is_passed_through_with_a_warning(run: RunCli) -> None:
    text = Path(STORY_1).read_text().replace("v1alpha2", "v1alpha1")
    ran = run("render", "-f", "-", stdin=text)
    assert yaml.safe_load(ran.out) == yaml.safe_load(text)
    assert "stdin:1: JobSet default/my-jobset (document 1): warning: only jobset.x-k8s.io/v1alpha2 is known" in ran.err


def test_a_jobset_without_a_name_is_refused(run: RunCli) -> None:
    ran = run("validate", "-f", "-", stdin=Path(STORY_1).read_text().replace("  name: my-jobset\n", ""))
    assert ran.code == 1
    assert "stdin:3: JobSet default/without a name (document 1): metadata.name: null: must be given" in ran.out


def test_without_a_gate_there_is_nothing_to_say_against(run: RunCli) -> None:
    text = Path(STORY_1).read_text().replace("  groupSchedulingConfig:\n    timeoutAfterSeconds: 300\n", "")
    ran = run("validate", "-f", "-", stdin=text)
    assert (ran.code, ran.out) == (0, "stdin:1: JobSet default/my-jobset (document 1): ok: no gate asked for\n")


@pytest.mark.parametrize("command", ["render", "validate"])
@pytest.mark.parametrize(
    ("arguments", "stdin", "ending"),
    [
        (["-f", "missing.yaml"], "", (1, "error: missing.yaml: No such file or directory\n")),
        (["-f", "-"], "a: [1\n", (1, "error: stdin:2:1: not YAML that kubectl would read: ")),
        (["-f", "-"], "", (1, "error: no objects in stdin\n")),
        (["-f", STORY_1, "--config", "missing.yaml"], "", (1, "error: missing.yaml: No such file or directory\n")),
        ([], "", (2, "Usage: jobset-gate")),
        (["--nonsense"], "", (2, "Usage: jobset-gate")),
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


def _odd(jobset: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    changed: Any = json.loads(json.dumps(jobset))
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    assert isinstance(changed, dict)
    return changed


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path] if path else []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        found += _paths(each, (*path, key))
    return found


WHOLE = yaml.safe_load(Path(STORY_2).read_text()) | {"metadata": {"name": "x", "annotations": {names.CONFIG: "{}"}}}


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(_paths(WHOLE)), anything)
def test_no_oddly_shaped_jobset_brings_the_rules_down(path: tuple[str | int, ...], value: Any) -> None:
    """The API server is not there to refuse the shape first."""
    jobset = _odd(WHOLE, path, value)
    outcome = judge(jobset, Settings())
    assert isinstance(outcome.stored, dict)
    assert isinstance(summary(jobset), str)


@pytest.mark.parametrize(("file", "story"), [(STORY_1, manifests.story1()), (STORY_2, manifests.story2())])
def test_the_examples_are_the_stories_that_the_flow_tests_play(file: str, story: dict[str, Any]) -> None:
    assert yaml.safe_load(Path(file).read_text()) == story
