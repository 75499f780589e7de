"""Command lines in this process."""

from pathlib import Path

import pytest
import yaml

from tests.fakes.cli_runner import CliResult, RunCli, restored_logs, run
from tests.fakes.jobsets import Json

__all__ = ["on", "restored_logs", "run"]


@pytest.fixture
def on(run: RunCli, tmp_path: Path) -> RunCli:
    """A command on one object in a file."""

    def call(command: str, given: Json, *more: str) -> CliResult:
        file = tmp_path / "given.yaml"
        file.write_text(yaml.safe_dump(given, sort_keys=False))
        return run(command, "-f", str(file), *more)

    return call
