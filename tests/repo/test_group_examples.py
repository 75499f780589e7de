"""examples/groups: one for each way of saying a group, clean by `validate -f`. That they gather: e2e."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from typer.testing import CliRunner

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


def objects(file: Path) -> list[Json]:
    return [one for one in yaml.safe_load_all(file.read_text()) if one]


def templates(one: Json) -> list[Json]:
    """Of its pods."""
    if one["kind"] == "JobSet":
        return [job["template"]["spec"]["template"] for job in one["spec"]["replicatedJobs"]]
    return [one["spec"]["template"]] if one["kind"] == "Job" else []


def claims(template: Json) -> list[Any]:
    """The groups that a pod's template names."""
    return list(formats.parse_memberships(RawMetadata.of_object({"metadata": template["metadata"]}, "default")))


def test_there_is_one_for_each_way() -> None:
    assert {file.stem for file in FILES} == {way.value for way in Format} | {BOTH}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_is_clean_and_its_pods_name_a_group_by_the_way_of_its_title(file: Path) -> None:
    """As a user would look at it first."""
    ran = CliRunner().invoke(build("jobset-gate", GlobalOptions()), ["validate", "-f", str(file)])
    assert ran.exit_code == 0, ran.output
    assert all(": ok: " in line for line in ran.output.splitlines())
    assert len(ran.output.splitlines()) == len(objects(file))
    named = [claims(template) for one in objects(file) for template in templates(one)]
    assert named
    assert {claim.format.value for some in named for claim in some} == {file.stem} or file.stem == BOTH
    head = file.read_text().partition("\napiVersion")[0].replace("\n# ", " ")
    assert ("prints no manifests; this one is ours" in head) is (file.stem in OURS)
    assert ("the design prints, in the form that an API server takes" in head) is file.stem.startswith("koordinator")
