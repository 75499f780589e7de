"""examples/groups: one for each way of saying a group, clean by `validate -f`, with pods enough for every minimum."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from typer.testing import CliRunner

from jobset_gate import names
from jobset_gate.cli.app import GlobalOptions, build
from jobset_gate.podgroups import formats
from jobset_gate.podgroups.model import Format, RawMetadata
from tests.repo.files import ROOT

Json = dict[str, Any]
FOLDER: Final = ROOT / "examples" / "groups"
OURS: Final = {"kep-24", "scheduler-plugins", "alibaba"}
"""The designs that print no manifests."""
BOTH: Final = "with-start-barrier"
FILES: Final = sorted(FOLDER.glob("*.yaml"))

each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def objects(file: Path) -> list[Json]:
    return [one for one in yaml.safe_load_all(file.read_text()) if one]


def templates(one: Json) -> list[tuple[int, Json]]:
    """(how many pods of it there are at once, the pod's template)."""
    if one["kind"] == "JobSet":
        jobs = [(job.get("replicas", 1), job["template"]["spec"]) for job in one["spec"]["replicatedJobs"]]
        return [(replicas * spec.get("parallelism", 1), spec["template"]) for replicas, spec in jobs]
    return [(one["spec"].get("parallelism", 1), one["spec"]["template"])] if one["kind"] == "Job" else []


def test_there_is_one_for_each_way() -> None:
    assert {file.stem for file in FILES} == {way.value for way in Format} | {BOTH}


@each_file
def test_it_is_clean(file: Path) -> None:
    """As a user would look at it first."""
    ran = CliRunner().invoke(build("jobset-gate", GlobalOptions()), ["validate", "-f", str(file)])
    assert ran.exit_code == 0, ran.output
    assert all(": ok: " in line for line in ran.output.splitlines())
    assert len(ran.output.splitlines()) == len(objects(file))


@each_file
def test_all_its_pods_name_a_group_by_the_way_of_its_title(file: Path) -> None:
    said = [template["metadata"] for one in objects(file) for _, template in templates(one)]
    ways = {
        claim.format.value
        for meta in said
        for claim in formats.parse_memberships(RawMetadata.of_object({"metadata": meta}, "default"))
    }
    assert said
    assert ways == {file.stem} or file.stem == BOTH


@each_file
def test_there_are_pods_enough_for_every_minimum(file: Path) -> None:
    count: dict[str, int] = {}
    needed: dict[str, int] = {}
    for one in objects(file):
        if one["kind"] == names.POD_GROUP:
            needed[one["metadata"]["name"]] = one["spec"].get("minMember") or one["spec"]["minMembers"]
        for many, template in templates(one):
            (claim, *_) = formats.parse_memberships(
                RawMetadata.of_object({"metadata": template["metadata"]}, "default")
            )
            count[claim.key.name] = count.get(claim.key.name, 0) + many
            if claim.spec.minimum is not None:
                needed[claim.key.name] = claim.spec.minimum
    assert needed.keys() == count.keys()
    assert all(count[name] >= minimum for name, minimum in needed.items())


@each_file
def test_it_says_whose_the_manifest_is(file: Path) -> None:
    head = file.read_text().partition("\napiVersion")[0].replace("\n# ", " ")
    assert ("prints no manifests; this one is ours" in head) is (file.stem in OURS)
    assert ("the design prints, in the form that an API server takes" in head) is file.stem.startswith("koordinator")
