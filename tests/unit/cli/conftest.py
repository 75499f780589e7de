"""Runs command lines in this process, as the shell would."""

import io
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

import pytest
import structlog

from jobset_gate.cli import exits
from jobset_gate.cli.main import main
from jobset_gate.kube.resources import CRDS
from jobset_gate.podgroups import crds
from tests.fakes import stored_pod_groups
from tests.fakes.stored_pod_groups import StoredPodGroups
from tests.plane.planes import Plane
from tests.plane.real import RealPlane


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


@pytest.fixture(scope="module")
def _real_kinds(_running_plane: RealPlane) -> Iterator[None]:
    """The kinds of PodGroup on the real plane go again with the last test of a module."""
    yield
    for name in crds.GROUPS:
        _running_plane.admin.must("DELETE", CRDS.path(name=name), also=404)


@pytest.fixture
async def town(plane: Plane, namespace: str, request: pytest.FixtureRequest) -> AsyncIterator[StoredPodGroups]:
    """A namespace for groups, and the kinds of PodGroup installed."""
    if plane.name == "real":
        request.getfixturevalue("_real_kinds")
    async with plane.client() as client:
        await stored_pod_groups.install_pod_group_crds(client)
        yield StoredPodGroups(client, namespace)
