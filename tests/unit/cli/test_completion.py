"""`completion`: what a shell completes."""

import subprocess
import sys
from pathlib import Path

import pytest

from jobset_gate.cli.app import COMPLETION as VARIABLE
from tests.fakes.cli_runner import RunCli

BASH = """
source "$1"
COMP_WORDS=(jobset-gate {words}); COMP_CWORD={number}
_jobset_gate_completion jobset-gate
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "number", "offered"),
    [
        ("wa", 1, ["wait", "watch"]),
        ("wait --for ''", 3, ["released", "timedout", "opened", "satisfied"]),
        ("get job", 2, ["jobsets"]),
        ("get gangs --source ''", 4, ["jobset", "job", "lws", "startgroup"]),
        ("completion z", 2, ["zsh"]),
        ("release --dry", 2, ["--dry-run"]),
    ],
)
def test_bash_offers_commands_options_and_choices(
    run: RunCli, tmp_path: Path, words: str, number: int, offered: list[str]
) -> None:
    ran = run("completion", "bash")
    assert (ran.code, ran.err) == (0, "")
    script, program = tmp_path / "script", tmp_path / "jobset-gate"
    script.write_text(ran.out)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{START}" "$@"\n')
    program.chmod(0o755)
    shown = subprocess.run(  # noqa: S603 - our own script
        ["bash", "-c", BASH.format(words=words, number=number), "bash", str(script)],  # noqa: S607 - whichever the machine has
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (shown.stdout.split(), shown.stderr) == (offered, "")


START = "import sys; from jobset_gate.cli.main import main; main(sys.argv[1:], 'jobset-gate')"


@pytest.mark.parametrize(
    ("shell", "more"), [("zsh", {}), ("fish", {"_TYPER_COMPLETE_FISH_ACTION": "get-args"})], ids=["zsh", "fish"]
)
def test_other_shells_are_answered(
    run: RunCli, monkeypatch: pytest.MonkeyPatch, shell: str, more: dict[str, str]
) -> None:
    assert f"{VARIABLE}=complete_{shell}" in run("completion", shell).out
    for key, value in {VARIABLE: f"complete_{shell}", "_TYPER_COMPLETE_ARGS": "jobset-gate wai", **more}.items():
        monkeypatch.setenv(key, value)
    ran = run()
    assert (ran.code, ran.err) == (0, "")
    assert "wait" in ran.out
    assert "Wait until a gang is released" in ran.out
