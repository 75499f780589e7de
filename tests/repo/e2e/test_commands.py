"""Whatever the runner starts is bounded in time and ends with it, with all that it has started itself."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e import commands
from tests.repo.files import ROOT

NESTED = 'sleep 600 & echo "$!" > "$0"; wait'


def ended(process: int, within: float = 30.0) -> bool:
    """Whether it comes to its end in so many seconds; who buries it does not matter."""
    try:
        watched = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], within)[0])
    finally:
        os.close(watched)


def test_it_returns_what_the_program_says() -> None:
    assert commands.run("sh", "-c", "cat; echo more >&2", stdin="told") == "told"


def test_a_failure_tells_the_command_the_code_and_the_reason() -> None:
    with pytest.raises(commands.CommandFailed, match=r"sh -c 'echo why >&2; exit 7' ended with 7: why"):
        commands.run("sh", "-c", "echo why >&2; exit 7")


def test_a_program_that_is_not_there_is_a_failure() -> None:
    with pytest.raises(commands.CommandFailed, match="no-such-program: No such file"):
        commands.run("no-such-program")
    assert not commands.works("no-such-program")


def test_what_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    note = tmp_path / "child"
    with pytest.raises(commands.CommandFailed, match="took longer than 3s"):
        commands.run("sh", "-c", NESTED, str(note), seconds=3)
    assert ended(int(note.read_text()))


def test_what_a_program_leaves_on_purpose_stays(tmp_path: Path) -> None:
    """As a script does that starts a daemon."""
    note = tmp_path / "child"
    commands.run("sh", "-c", 'sleep 600 >/dev/null 2>&1 & echo "$!" > "$0"', str(note))
    child = int(note.read_text())
    try:
        assert not ended(child, within=0)
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_what_was_started_and_clears_up(tmp_path: Path, number: signal.Signals) -> None:
    note = tmp_path / "child"
    os.mkfifo(note)
    program = (
        "import sys\nfrom e2e import commands\ncommands.heed_signals()\n"
        "try: commands.show('sh', '-c', sys.argv[1], sys.argv[2], seconds=60)\n"
        "finally: print('cleared up', flush=True)\n"
    )
    command = [sys.executable, "-c", program, NESTED, str(note)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as runner:  # noqa: S603
        child = int(note.read_text())
        runner.send_signal(number)
        out, _ = runner.communicate(timeout=60)
    assert runner.returncode == 128 + number
    assert "cleared up" in out
    assert ended(child)
