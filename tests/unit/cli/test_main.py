"""The command line as such: names, help, versions, exit codes, errors, and how long help takes."""

import os
import subprocess
import sys
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path

import pytest

from jobset_gate.cli.app import COMMANDS
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.main import error_line, program_name
from jobset_gate.kube.errors import Unauthorized, Unreachable
from tests.fakes.cli_runner import RunCli
from tests.repo.files import ROOT

SLOW = {"rich", "pydantic", "structlog", "cryptography", "kubernetes_asyncio"}
HEAVY = SLOW | {"aiohttp", "yaml", "msgspec", "asyncio"}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/usr/bin/jobset-gate", "jobset-gate"),
        ("/usr/bin/kubectl-jobset_gate", "kubectl jobset-gate"),
        ("somewhere/cli/__main__.py", "jobset-gate"),
    ],
)
def test_the_program_has_the_name_it_is_called_by(path: str, name: str) -> None:
    assert program_name(path) == name


def test_help_reads_right_under_both_names(run: RunCli) -> None:
    for program in ("jobset-gate", "kubectl jobset-gate"):
        for command in COMMANDS:
            ran = run(command, "--help", program=program)
            assert (ran.code, ran.err) == (0, "")
            assert ran.out.startswith(f"Usage: {program} {command} [OPTIONS]")
            assert f"Example: {program} {command}" in ran.out
            assert "\x1b" not in ran.out


def test_help_lists_all_commands(run: RunCli) -> None:
    ran = run("--help")
    assert [line.split()[0] for line in listed_in(ran.out)] == [*COMMANDS]
    for words, shown in (((), "Commands:"), (("nonsense",), "No such command 'nonsense'")):
        ran = run(*words)
        assert (ran.code, shown in ran.out + ran.err) == (2, True)


def test_help_is_a_word_too_and_as_wide_as_the_terminal(run: RunCli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("help") == run("--help")
    for width in (60, 160):
        monkeypatch.setenv("COLUMNS", str(width))
        asked = run("help", "get", "gangs")
        assert asked == run("get", "gangs", "-h")
        assert width - 30 < max(map(len, asked.out.splitlines())) <= width


def test_short_options_take_their_value_as_kubectls_do(run: RunCli) -> None:
    for words in (("-o=json",), ("-o", "json"), ("-ojson",), ("--output=json",)):
        assert run("version", "--client", *words).out.startswith("{")
    ran = run("why", "--server", "http://127.0.0.1:1", "--", "-n=x")
    assert "no API server is reached" in ran.err


def test_version(run: RunCli) -> None:
    assert run("--version").out == f"jobset-gate {version('jobset-gate')}\n"


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (CommandError("it is\nso", ExitCode.TIMEOUT), "it is so"),
        (FileNotFoundError(2, "No such file or directory", "x.yaml"), "x.yaml: No such file or directory"),
        (Unreachable("nobody answers"), "nobody answers"),
        (Unauthorized(401, "", "no"), "the API server takes these credentials for nobody's: 401: no"),
        (ValueError("what"), "internal error: ValueError: what (run `p --debug ...` for a traceback)"),
        (CommandError(""), "CommandError"),
    ],
)
def test_an_error_is_one_line(problem: Exception, line: str) -> None:
    assert error_line(problem, "p") == line


@pytest.mark.parametrize(
    ("value", "option", "raises"), [("1", (), True), ("0", (), False), ("", (), False), ("", ("--debug",), True)]
)
def test_debug_shows_the_traceback(
    run: RunCli, monkeypatch: pytest.MonkeyPatch, value: str, option: tuple[str, ...], raises: bool
) -> None:
    monkeypatch.setenv("JOBSET_GATE_DEBUG", value)
    with pytest.raises(CommandError) if raises else nullcontext():
        assert run(*option, "validate", "-f", "/nowhere").code == 1


IMPORTED = """
import gc, os, sys
from jobset_gate.cli.main import main

before = dict(os.environ)
try:
    main([*sys.argv[1:], "--help"])
except SystemExit as ended:
    assert not ended.code
assert (gc.isenabled(), dict(os.environ)) == (True, before), "what an import is spared comes back after it"
print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("command", "light"), [([], HEAVY), (["why"], SLOW), (["get", "gangs"], SLOW), (["wait"], SLOW)]
)
def test_a_command_imports_no_more_than_it_needs(command: list[str], light: set[str]) -> None:
    """What keeps it quick; a test of the time itself would fail on a busy machine."""
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", IMPORTED, *command], cwd=ROOT, capture_output=True, text=True,
        check=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ran.stdout.startswith("Usage: ")
    assert light & {*ran.stderr.split()} == set()


def listed_in(text: str) -> list[str]:
    """The lines of a help's commands."""
    return text.split("Commands:\n")[1].split("\n\n", maxsplit=1)[0].splitlines()


def test_streams_that_were_closed_are_no_error_of_ours(tmp_path: Path) -> None:
    """`jobset-gate describe ... >&- 2>file`: what is wrong is printed, and is the cluster's matter."""
    words = (sys.executable, "-m", "jobset_gate.cli", "describe", "train", "--kubeconfig", str(tmp_path / "none"))
    ran = subprocess.run(  # noqa: S603 - our own program
        ["/bin/sh", "-c", 'exec "$@" <&- >&-', "sh", *words], cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (1, f"error: kubeconfig {tmp_path / 'none'}: there is no such file\n")


def test_a_reader_that_leaves_early_is_no_error_of_ours() -> None:
    """`jobset-gate render ... | head -1`: no traceback."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    ran = subprocess.run(
        [sys.executable, "-m", "jobset_gate.cli", "render", "-f", "examples/story-1.yaml"], cwd=ROOT, stdout=write_end,
        stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(write_end)
    assert "Traceback" not in ran.stderr
