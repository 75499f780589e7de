"""Runs command lines in this process, as the shell would."""

import io
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

import pytest
import structlog

from jobset_gate.cli import exits
from jobset_gate.cli.main import main
from tests.fakes import stored_pod_groups
from tests.fakes.stored_pod_groups import StoredPodGroups
from tests.plane.planes import Plane


@dataclass(frozen=True, slots=True)
class CliResult:
    """How a command line ended."""

    code: int
    out: str
    err: str


RunCli = Callable[..., CliResult]


class _Stdin(io.StringIO):
    """Standard input that knows its bytes."""

    @property
    def buffer(self) -> io.BytesIO:
        return io.BytesIO(self.getvalue().encode())


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """How a command line logs must not reach other tests."""
    root = logging.getLogger()
    handlers, level, config = root.handlers[:], root.level, structlog.get_config()
    yield
    exits.print_error = exits.print_plain_error
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**config)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> RunCli:
    """`run("render", "-f", "-", stdin=manifest)`."""

    def call(*arguments: str, stdin: str = "", program: str = "jobset-gate") -> CliResult:
        monkeypatch.setattr("sys.stdin", _Stdin(stdin))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments, program)
        out, err = capsys.readouterr()
        code = ended.value.code
        return CliResult(code if isinstance(code, int) else 0, out, err)

    return call


@pytest.fixture
async def town(plane: Plane, namespace: str) -> AsyncIterator[StoredPodGroups]:
    """A namespace for groups, and the kinds of PodGroup installed."""
    async with plane.client() as client:
        await stored_pod_groups.install_pod_group_crds(client)
        yield StoredPodGroups(client, namespace)
