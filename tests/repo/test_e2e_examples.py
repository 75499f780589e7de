"""Examples as `make e2e` runs them: all of them, with a program that fails without a peer."""

import subprocess
import sys
from typing import Any, Final

from e2e import example_overlays, example_programs, quickstart
from e2e.example_overlays import FOLDER, PROGRAM, Overlay
from e2e.rendezvous import MISSED
from e2e.scenarios.test_quickstart import CAUSES, WHY

Json = dict[str, Any]
ONE: Final = {"requests": {"test/resource": "1"}, "limits": {"test/resource": "1"}}
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


def over(example: str) -> Overlay:
    return Overlay(
        "an/image:1", "here", ONE, example_programs.ALL[example].commands, example_programs.ALL[example].pods_per_job
    )


def test_every_example_is_run_or_has_no_pods() -> None:
    files = {str(it.relative_to(FOLDER)) for it in FOLDER.rglob("*.yaml")}
    assert files - {"trainer/trainjob.yaml"} == set(example_programs.ALL), "there is no Trainer on the kind cluster"


def test_the_readme_names_every_example() -> None:
    text = (FOLDER / "README.md").read_text()
    assert [it for it in example_programs.ALL if f"({it})" not in text] == []


def test_all_pods_of_an_example_meet() -> None:
    made = {it: [over(it).over(one) for one in example_overlays.documents(it)] for it in example_programs.ALL}
    assert {it: example_overlays.with_extended_resource(some) for it, some in made.items()} == MANY


# --- The quickstart --------------------------------------------------------------------------------------------------


def test_every_gang_that_the_quickstart_breaks_is_explained_in_the_suite() -> None:
    lines = quickstart.typed(quickstart.DOCUMENT.read_text())
    explained = [line.removeprefix(WHY).split()[0] for line in lines if line.startswith(WHY)]
    assert sorted(explained) == sorted(CAUSES)
    typed = [quickstart.here(line, "mine", "localhost/small:1") for line in lines]
    assert not any("busybox:1" in line for line in typed)
    assert any(line.endswith("-n mine") for line in typed)


# --- The program that stands in for the examples' own ----------------------------------------------------------------


def test_it_fails_and_names_the_rank_that_is_missing() -> None:
    """That it succeeds when all meet is seen on nodes."""
    words = [sys.executable, "-c", PROGRAM.read_text(), "meet", "127.0.0.1", "0", "0", "2"]
    ran = subprocess.run(words, env={"PATIENCE": "1"}, capture_output=True, text=True, check=False)  # noqa: S603
    assert ran.returncode == MISSED
    assert ran.stdout.splitlines()[-1] == "missing after 1s: 1"
