"""`validate` in CI: what it reads, what it makes an error, and its output for programs."""

import json
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest
import yaml

from docs.make.schemas import SCHEMAS
from jobset_gate import names
from jobset_gate.cli.commands.validate import REASONS
from jobset_gate.objects.field_error import CauseType
from tests.fakes.cli_runner import RunCli
from tests.fakes.manifest_texts import CONFIG, RING, TRAIN, noted, train

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"
UNGATED = train((CONFIG, ""))
DOUBTFUL = train(("backoffLimit: 0", "backoffLimit: 7"))
WRONG = train(("300", "0"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with manifests in it and in a folder below."""
    monkeypatch.chdir(tmp_path)
    texts = {"m/b.yaml": WRONG, "m/a.yml": TRAIN, "m/note.txt": "- no manifest", "m/deep/c.json": '{"kind": "X"}'}
    for path, text in texts.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    return tmp_path


def files(out: str) -> list[str]:
    return [line.partition(":")[0] for line in out.splitlines()]


def test_a_folder_stands_for_its_manifests_by_name_and_files_come_in_the_order_given_and_each_once(
    run: RunCli, folder: Path
) -> None:
    assert "m/b.yaml:7:5: JobSet train (document 1): spec.groupSchedulingConfig" in run("render", "m").err
    assert files(run("validate", "m").out) == ["m/a.yml", "m/b.yaml"]
    assert files(run("validate", "-R", "-f", "m").out) == ["m/a.yml", "m/b.yaml", "m/deep/c.json"]
    assert files(run("validate", "m/b.yaml", "m/a.yml", "-f", "m/deep/c.json", "-f", "m").out) == [
        "m/deep/c.json",
        "m/a.yml",
        "m/b.yaml",
    ]
    assert files(run("validate", "-", "m/a.yml", stdin=SERVICE).out) == ["stdin", "m/a.yml"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "error: empty: no file in it ends with .json, .yaml, .yml; -R reads its folders, too\n"),
        (["-R"], "error: empty: no file in it ends with .json, .yaml, .yml\n"),
    ],
)
def test_a_folder_without_a_manifest_is_refused(run: RunCli, folder: Path, options: list[str], said: str) -> None:
    Path("empty/below").mkdir(parents=True)
    ran = run("validate", *options, "empty")
    assert (ran.code, ran.out, ran.err.startswith(said)) == (1, "", True), ran.err


def test_one_file_that_cannot_be_read_hides_no_other(run: RunCli, folder: Path) -> None:
    Path("m/a.yml").write_text(WRONG + "---\na: [\n")
    lines = run("validate", "m").out.splitlines()
    assert [line.split(": ")[0] for line in lines] == ["m/a.yml:7:5", "m/a.yml:23:1", "m/b.yaml:7:5"]


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (TRAIN, ["--require-gate"], 0),
        (SERVICE + "---\n" + TRAIN, ["--require-gate"], 0),
        (UNGATED + "---\n" + RING.replace("ten", "10").replace('"4"', "4"), ["--require-gate"], 0),
        (UNGATED, [], 0),
        (UNGATED, ["--require-gate"], 1),
        (SERVICE, ["--require-gate"], 1),
        (DOUBTFUL, [], 0),
        (DOUBTFUL, ["--strict"], 1),
        (TRAIN, ["--strict"], 0),
    ],
)
def test_what_ci_may_require_in_addition_to_errors(run: RunCli, text: str, options: list[str], code: int) -> None:
    assert run("validate", *options, "-", stdin=text).code == code


def test_each_file_needs_a_gang_where_one_is_required(run: RunCli, folder: Path) -> None:
    Path("m/b.yaml").write_text(UNGATED)
    ran = run("validate", "--require-gate", "m")
    assert ran.code == 1
    (line,) = (line for line in ran.out.splitlines() if "--require-gate" in line)
    assert line.startswith("m/b.yaml:1:1: no gang in this manifest, and --require-gate is set")


def test_a_mistyped_gate_is_not_reported_as_missing_too(run: RunCli) -> None:
    ran = run("validate", "--require-gate", "-", stdin=train(("groupSchedulingConfig", "groupScheduling")))
    assert (ran.code, ran.out.count("\n"), "no gang" in ran.out) == (1, 1, False)


# --- For programs ----------------------------------------------------------------------------------------------------


def test_json_and_yaml_are_the_document_of_the_reference(run: RunCli) -> None:
    text = WRONG + "---\n" + DOUBTFUL
    document = json.loads(run("validate", "-", "-o", "json", stdin=text).out)
    jsonschema.validate(document, SCHEMAS["validate"] | {"additionalProperties": False})
    assert yaml.safe_load(run("validate", "-", "-o", "yaml", stdin=text).out) == document
    assert document["summary"] == {"errors": 1, "warnings": 1}
    assert document["objects"] == [
        {
            "file": "stdin",
            "line": 22,
            "column": 1,
            "object": "JobSet train (document 2)",
            "message": "ok: 4 pods of workers wait for each other, at most 300s",
        }
    ]
    assert [(it["level"], it["line"], it["field"]) for it in document["findings"]] == [
        ("error", 7, "spec.groupSchedulingConfig.timeoutAfterSeconds"),
        ("warning", 36, "spec.replicatedJobs[0].template.spec.backoffLimit"),
    ]


def test_github_gets_a_command_for_each_finding_and_no_text_of_a_manifest_makes_another(run: RunCli) -> None:
    text = train(noted(f'"{names.DOMAIN}/a,b:%\\n::warning::c": "x"'), ("backoffLimit: 0", "backoffLimit: 7"))
    ran = run("validate", "-", "-o", "github", stdin=text)
    first, second = ran.out.splitlines()
    title = "title=jobset-gate%3A JobSet train (document 1)"
    begin = f"::error file=stdin,line=6,col=5,{title}::metadata.annotations[{names.DOMAIN}/a,b:%25%0A::warning::c]: "
    assert first.startswith(begin)
    assert second.startswith(f"::warning file=stdin,line=17,col=9,{title}::spec.replicatedJobs[0]")
    assert run("validate", "-", "-o", "github", stdin=TRAIN).out == ""


def test_sarif_has_the_form_that_code_scanning_reads(run: RunCli, folder: Path) -> None:
    Path("m/b c.yaml").write_text("a: [")
    for text, base in (("m", ""), (str(folder / "m"), f"{folder.as_uri()}/")):
        document = json.loads(run("validate", text, "-o", "sarif").out)
        (found,) = document.pop("runs")
        assert (document["version"], document["$schema"].endswith("/sarif-schema-2.1.0.json")) == ("2.1.0", True)
        driver = found["tool"]["driver"]
        assert (driver["name"], found["columnKind"]) == ("jobset-gate", "unicodeCodePoints")
        assert {it["id"]: it["shortDescription"]["text"] for it in driver["rules"]} == REASONS
        torn, wrong = found["results"]
        assert [it["ruleId"] for it in (torn, wrong)] == ["Malformed", "FieldValueInvalid"]
        place = {"artifactLocation": {"uri": f"{base}m/b.yaml"}, "region": {"startLine": 7, "startColumn": 5}}
        assert (wrong["level"], wrong["locations"]) == ("error", [{"physicalLocation": place}])
        assert wrong["message"]["text"].startswith("JobSet train (document 1): spec.groupSchedulingConfig.timeout")
        assert torn["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": f"{base}m/b%20c.yaml"}
    assert json.loads(run("validate", "m/a.yml", "-o", "sarif").out)["runs"][0]["results"] == []


def test_every_reason_has_its_rule() -> None:
    assert {*REASONS} == {*CauseType, "Malformed", "Warning"}
