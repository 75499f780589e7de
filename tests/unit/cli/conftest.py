"""Command lines in this process."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from tests.fakes.cli_runner import CliResult, RunCli, restored_logs, run
from tests.fakes.doctor_shell import DoctorShell
from tests.fakes.jobsets import Json
from tests.fakes.stored_gang import StoredJobSet, install_jobset_crd
from tests.plane.planes import Plane

__all__ = ["on", "restored_logs", "run"]


@pytest.fixture
def on(run: RunCli, tmp_path: Path) -> RunCli:
    """A command on one object in a file."""

    def call(command: str, given: Json, *more: str) -> CliResult:
        file = tmp_path / "given.yaml"
        file.write_text(yaml.safe_dump(given, sort_keys=False))
        return run(command, "-f", str(file), *more)

    return call


@pytest.fixture
async def camp(plane: Plane, namespace: str) -> AsyncIterator[StoredJobSet]:
    """A namespace of a cluster with JobSet and our field."""
    async with plane.client() as client:
        yield await install_jobset_crd(client, namespace)


@pytest.fixture
def doctor(run: RunCli, plane: Plane, namespace: str) -> DoctorShell:
    return DoctorShell(run, plane.kubeconfig, namespace, ("doctor",))
