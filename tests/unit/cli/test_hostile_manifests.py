"""`validate` and `render` on manifests made to cost time, or to steer a terminal."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobset_gate import names
from jobset_gate.cli.commands import render, validate
from jobset_gate.cli.commands.validate import FindingsFormat
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.manifests.reader import documents, read
from jobset_gate.settings import Settings
from tests.fakes.growth import MOST, growth
from tests.fakes.jobsets import Json, jobset, replicated
from tests.fakes.podgroups.sources import PLUGINS

SETTINGS = Settings()


def written(folder: Path, text: str, name: str = "m.yaml") -> str:
    """The path of a file with this text."""
    (folder / name).write_text(text)
    return str(folder / name)


def dumped(*documents: Json) -> str:
    return "---\n".join(json.dumps(it, indent=1) + "\n" for it in documents)


def merges(count: int) -> str:
    """Each mapping merges ten times the one before it."""
    first = "a: &b0 {" + ", ".join(f"k{index}: 1" for index in range(100)) + "}\n"
    return first + "".join(f"b{n}: &b{n} {{<<: [{', '.join([f'*b{n - 1}'] * 10)}]}}\n" for n in range(1, count))


def staircase(count: int) -> str:
    """Each mapping merges the thirty before it."""
    steps = ["- &m0 {k0: 1}\n"]
    for n in range(1, count):
        before = ", ".join(f"*m{index}" for index in range(max(0, n - 30), n))
        steps.append(f"- &m{n} {{<<: [{before}], k{n}: 1}}\n")
    return "x:\n" + "".join(steps)


def aliases(count: int) -> str:
    """Each list holds ten times the one before it."""
    return "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, count))


@pytest.mark.parametrize("text", [aliases(9), staircase(300)], ids=["aliases", "merges"])
@pytest.mark.parametrize("split", [False, True], ids=["render", "validate"])
def test_what_stands_for_millions_of_values_is_refused_before_they_are_made(
    text: str, split: bool, tmp_path: Path
) -> None:
    assert len(text) < 100_000
    with pytest.raises(CommandError, match="stands for more than 1000000 values"):
        list(documents(written(tmp_path, text), split=split))


def test_merges_of_merges_of_the_same_keys_stand_for_few_values(tmp_path: Path) -> None:
    (document,) = read([written(tmp_path, merges(9))])
    assert document.value["b8"] == document.value["a"]


@pytest.mark.parametrize("digits", ["9" * 5000, "-" + "9" * 5000, "1" + "0" * 2_000_000])
def test_an_integer_of_thousands_of_digits_is_reported_with_line_and_path(digits: str, tmp_path: Path) -> None:
    file = written(tmp_path, f"kind: X\nspec:\n  list:\n  - a: {digits}\n")
    with pytest.raises(CommandError) as failed:
        read([file])
    message = str(failed.value)
    assert message.startswith(f"{file}:4:8: ")
    assert message.endswith("is no number that Kubernetes knows (at spec.list[0].a)")
    assert len(message) < 400


EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egpj\u2066"


@pytest.mark.parametrize(
    "given",
    [
        jobset(config={EVIL: 1}),
        jobset(name=f"{EVIL}\nm.yaml: ok"),
        jobset(replicated(f"{EVIL}\nm.yaml: ok")),
        jobset(notes={names.BYPASS: EVIL}),
        {"kind": f"{EVIL}\nm.yaml: ok", "metadata": {"name": EVIL}},
        {"kind": "Pod", "metadata": {"name": f"{EVIL}\n- x", "labels": {PLUGINS: EVIL}}, "spec": {}},
    ],
)
def test_keys_and_names_neither_steer_the_terminal_nor_begin_lines(
    given: Json, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, yaml.safe_dump(given))
    for command, output in [("render", FindingsFormat.TEXT), *(("validate", it) for it in FindingsFormat)]:
        _run(command, file, output)
        said = "".join(capfd.readouterr())
        assert not {it for it in said if not it.isprintable() and it != "\n"}
        assert "\nm.yaml: ok" not in said


def pod_of_a_group(number: int) -> Json:
    meta = {"name": f"p{number}", "namespace": f"n{number}", "labels": {PLUGINS: "g"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta}


AS_YAML = "# JSON is YAML, if the first character does not say that it is JSON\n"
TEXTS: dict[str, Callable[[int], str]] = {
    "unknown keys": lambda count: (
        AS_YAML + dumped(jobset(config={"targetReplicatedJobs": [], **{f"k{n}": 0 for n in range(count)}}))
    ),
    "unknown fields": lambda count: (
        AS_YAML + dumped(jobset(replicated(pod={f"hostNetwor{n}": 0 for n in range(count)})))
    ),
    "objects": lambda count: AS_YAML + dumped(*(jobset(name=f"gang-{n}") for n in range(count // 20))),
    "groups": lambda count: AS_YAML + dumped(*map(pod_of_a_group, range(count // 10))),
    "objects of JSON": lambda count: '{"kind": "X"}\n' * (2 * count),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("command", ["validate", "render"])
def test_four_times_the_manifest_takes_about_four_times_as_long(
    text: Callable[[int], str], command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def work(count: int) -> Callable[[], object]:
        file = written(tmp_path, text(count), f"{count}.yaml")
        return lambda: _run(command, file)

    assert growth(work, 400) < MOST
    capfd.readouterr()


def _run(command: str, file: str, output: FindingsFormat = FindingsFormat.TEXT) -> Any:
    if command == "validate":
        return validate.print_checked([file], SETTINGS, output)
    found = render.print_rendered([file], SETTINGS, render.ManifestFormat.YAML)
    assert found in (ExitCode.OK, ExitCode.ERROR)
    return found
