"""Runs command lines in this process, as the shell would."""

import asyncio
import io
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import pytest
import structlog

from jobset_gate.cli import exits
from jobset_gate.cli.main import main


@dataclass(frozen=True, slots=True)
class CliResult:
    code: int
    out: str
    err: str


RunCli = Callable[..., CliResult]


@dataclass(frozen=True, slots=True)
class CliShell:
    """Command lines against a cluster, while the test's loop goes on. `words` begin each."""

    run: RunCli
    kubeconfig: Path
    namespace: str = ""
    words: tuple[str, ...] = ()

    async def __call__(self, *arguments: str) -> CliResult:
        given = {"-A", "-n"} & {*arguments} or not self.namespace
        where = () if given else ("-n", self.namespace)
        words = (*self.words, *arguments, *where, "--kubeconfig", str(self.kubeconfig))
        return await asyncio.to_thread(self.run, *words)

    def command(self, *words: str) -> Self:
        return replace(self, words=words)

    def user(self, kubeconfig: Path) -> Self:
        return replace(self, kubeconfig=kubeconfig)


class Terminal(io.StringIO):
    """A stream at which a person sits."""

    def isatty(self) -> bool:
        return True


class _Stdin(io.StringIO):
    """Standard input that knows its bytes."""

    @property
    def buffer(self) -> io.BytesIO:
        return io.BytesIO(self.getvalue().encode())


@pytest.fixture(autouse=True)
def restored_logs() -> Iterator[None]:
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
