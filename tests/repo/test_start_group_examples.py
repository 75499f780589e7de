"""The manifests of start groups, in examples/ and in the how-to: clean by `validate -f`, each with its group."""

from pathlib import Path
from typing import Final

import pytest
import yaml
from typer.testing import CliRunner

from jobset_gate import names
from jobset_gate.cli.app import GlobalOptions, build
from tests.repo.documents import blocks
from tests.repo.files import ROOT

HOWTO: Final = (ROOT / "docs/howto/gate-any-controller.md").read_text()
MANIFESTS: Final = {
    yaml.safe_load(block)["kind"] + ("" if "volcano" not in block else " of Volcano"): block
    for block in blocks(HOWTO, "yaml")
    if "apiVersion" in block
} | {"example": (ROOT / "examples/start-group.yaml").read_text()}


def test_the_page_has_a_manifest_for_each_controller_that_it_names() -> None:
    assert set(MANIFESTS) == {"StatefulSet", "PyTorchJob", "MPIJob", "Job of Volcano", "example"}


@pytest.mark.parametrize("name", MANIFESTS)
def test_it_is_clean_and_its_pods_are_a_start_group(name: str, tmp_path: Path) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(MANIFESTS[name])
    ran = CliRunner().invoke(build("jobset-gate", GlobalOptions()), ["validate", "--strict", "-f", str(file)])
    assert ran.exit_code == 0, ran.output
    assert any(": ok: " in line and "start group" in line for line in ran.output.splitlines()), ran.output
    assert MANIFESTS[name].count(names.START_GROUP) == MANIFESTS[name].count(names.START_SIZE) == 1
