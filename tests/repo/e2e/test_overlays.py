"""Examples as the suite on real nodes runs them: all of them, with only as much laid over as it says."""

import copy
from typing import Any, Final

import pytest

from e2e import example_overlays, example_programs
from e2e.example_overlays import FOLDER, Overlay

Json = dict[str, Any]
SEAT: Final = {"requests": {"a/seat": "1"}, "limits": {"a/seat": "1"}}
MANY: Final = {
    "pytorch.yaml": 4,
    "jax.yaml": 4,
    "mpi.yaml": 3,
    "kueue.yaml": 3,
    "first-gang.yaml": 4,
    "story-1.yaml": 6,
    "story-2.yaml": 6,
    "groups/alibaba.yaml": 4,
    "groups/kep-24.yaml": 3,
    "groups/koordinator-annotations.yaml": 5,
    "groups/koordinator-podgroup.yaml": 6,
    "groups/scheduler-plugins.yaml": 6,
    "groups/with-start-barrier.yaml": 4,
}
"""The pods that have to meet."""

each_example = pytest.mark.parametrize("example", example_programs.ALL)


def over(example: str) -> Overlay:
    return Overlay(
        "an/image:1", "here", SEAT, example_programs.ALL[example].commands, example_programs.ALL[example].pods_per_job
    )


def test_every_example_is_run_or_has_no_pods() -> None:
    files = {str(it.relative_to(FOLDER)) for it in FOLDER.rglob("*.yaml")}
    assert files == set(example_programs.ALL)


def test_the_readme_names_every_example() -> None:
    text = (FOLDER / "README.md").read_text()
    assert [it for it in example_programs.ALL if f"({it})" not in text] == []


@each_example
def test_all_its_pods_meet(example: str) -> None:
    made = [over(example).over(one) for one in example_overlays.documents(example)]
    assert example_overlays.with_extended_resource(made) == MANY[example]
    assert (example_programs.ALL[example].minimum or MANY[example]) <= MANY[example]


@each_example
def test_nothing_else_of_it_is_changed(example: str) -> None:
    before = example_overlays.documents(example)
    after = [over(example).over(one) for one in copy.deepcopy(before)]
    for one, other in zip(before, after, strict=True):
        assert other["metadata"].pop("namespace") == "here"
        one["metadata"].pop("namespace", None)
        for name, job in example_overlays.jobs(other):
            original = dict(example_overlays.jobs(one))[name]
            original["template"]["spec"].setdefault("restartPolicy", "Never")
            for field in ("parallelism", "completions"):
                if job.get(field) != original.get(field):
                    assert job[field] == example_programs.ALL[example].pods_per_job
                    job[field] = original[field]
            containers = zip(original["template"]["spec"]["containers"], job["template"]["spec"]["containers"])  # noqa: B905 - as many
            for was, now in containers:
                assert [it for it in was.get("env", ()) if it not in now["env"]] == []
                for field in ("image", "command", "resources", "env"):
                    was.pop(field, None), now.pop(field)
        if one["kind"] == "PodGroup":
            one["spec"] = {key: value for key, value in one["spec"].items() if not key.endswith("Resources")}
        assert _in("here", one) == other


def _in(namespace: str, value: Any) -> Any:
    """The same where groups are named with that namespace."""
    if isinstance(value, dict):
        return {key: _in(namespace, it) for key, it in value.items()}
    if isinstance(value, list):
        return [_in(namespace, it) for it in value]
    return value.replace('"default/', f'"{namespace}/') if isinstance(value, str) else value
