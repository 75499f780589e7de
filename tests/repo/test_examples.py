"""The examples and the manifests of the how-to are clean by `validate -f`, and `make e2e` runs them."""

from typing import Final

import pytest
import yaml

from e2e import example_programs, quickstart
from e2e.example_overlays import FOLDER
from e2e.scenarios.test_quickstart import CAUSES, WHY
from jobset_gate.podgroups import formats
from jobset_gate.podgroups.model import Format, RawMetadata
from tests.fakes.cli_runner import RunCli, restored_logs, run
from tests.repo.documents import blocks
from tests.repo.files import ROOT

__all__ = ["restored_logs", "run"]

HOWTO: Final = (ROOT / "docs/howto/gate-any-controller.md").read_text()
START_GROUPS: Final = {
    yaml.safe_load(block)["kind"] + ("" if "volcano" not in block else " of Volcano"): block
    for block in blocks(HOWTO, "yaml")
    if "apiVersion" in block
} | {"example": (FOLDER / "start-group.yaml").read_text()}
GROUPS: Final = {file.stem: file.read_text() for file in sorted((FOLDER / "groups").glob("*.yaml"))}
BOTH: Final = "with-start-barrier"


def test_there_is_one_for_each_format_of_a_group_and_each_controller_that_the_how_to_names() -> None:
    assert set(GROUPS) == {way.value for way in Format} | {BOTH}
    assert set(START_GROUPS) == {"StatefulSet", "PyTorchJob", "MPIJob", "Job of Volcano", "example"}


@pytest.mark.parametrize("name", START_GROUPS)
def test_a_manifest_of_a_start_group_is_clean(run: RunCli, name: str) -> None:
    ran = run("validate", "--strict", "-", stdin=START_GROUPS[name])
    assert ran.code == 0, ran
    assert any(": ok: " in line and "start group" in line for line in ran.out.splitlines()), ran


@pytest.mark.parametrize("name", GROUPS)
def test_an_example_of_a_group_is_clean_and_its_pods_name_it_by_the_way_of_its_title(run: RunCli, name: str) -> None:
    ran = run("validate", "-", stdin=GROUPS[name])
    assert (ran.code, [line for line in ran.out.splitlines() if ": ok: " not in line]) == (0, [])
    found = set()
    for one in yaml.safe_load_all(GROUPS[name]):
        jobs = [it["template"] for it in one["spec"].get("replicatedJobs", ())] or [one]
        for meta in (it["spec"]["template"]["metadata"] for it in jobs if "template" in it["spec"]):
            found |= {
                it.format.value for it in formats.parse_memberships(RawMetadata.of_object({"metadata": meta}, "x"))
            }
    assert found
    assert name in (*found, BOTH)


def test_every_example_is_run_or_has_no_pods_and_the_readme_names_it() -> None:
    files = {str(it.relative_to(FOLDER)) for it in FOLDER.rglob("*.yaml")}
    assert files - {"trainer/trainjob.yaml", "leaderworkerset.yaml"} == set(example_programs.ALL), (
        "neither Trainer nor LWS is on kind"
    )
    text = (FOLDER / "README.md").read_text()
    assert [it for it in example_programs.ALL if f"({it})" not in text] == []


def test_every_gang_that_the_quickstart_breaks_is_explained_in_the_suite() -> None:
    lines = quickstart.typed(quickstart.DOCUMENT.read_text())
    explained = [line.removeprefix(WHY).split()[0] for line in lines if line.startswith(WHY)]
    assert sorted(explained) == sorted(CAUSES)
