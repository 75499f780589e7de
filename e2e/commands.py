"""Runs other programs, bounded in time, and leaves none behind."""

import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from types import FrameType

SECONDS = 120.0
LEAVE_SECONDS = 10.0
CLEAR_UP_SECONDS = 45.0


class Failed(Exception):
    """A program ended with another code than 0, or not in time; the message holds what it said."""


def run(*command: str, stdin: str | None = None, seconds: float = SECONDS, env: Mapping[str, str] | None = None) -> str:
    """What the program wrote to its standard output. Raises Failed."""
    code, out, err = outcome(*command, stdin=stdin, seconds=seconds, env=env)
    if code != 0:
        raise Failed(f"{shlex.join(command)} ended with {code}: {err.strip() or out.strip()}")
    return out


def outcome(
    *command: str, stdin: str | None = None, seconds: float = SECONDS, env: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Its code, standard output and standard error. Raises Failed if it is not there or takes too long."""
    with _started(command, env, piped=True, reads=stdin is not None) as process:
        try:
            out, err = process.communicate(stdin, timeout=seconds)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{shlex.join(command)} took longer than {seconds:.0f}s") from late
        finally:
            end(process)
    return process.returncode, out, err


def show(*command: str, seconds: float, env: Mapping[str, str] | None = None) -> int:
    """Its code; what it says goes to the terminal as it comes. Raises Failed if it takes too long.

    It is asked to stop by SIGINT, as a person at the terminal would: pytest then clears up behind its tests.
    """
    sys.stdout.flush()
    with _started(command, env, piped=False) as process:
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{shlex.join(command)} took longer than {seconds:.0f}s") from late
        finally:
            end(process, signal.SIGINT, CLEAR_UP_SECONDS)


def works(*command: str, seconds: float = SECONDS) -> bool:
    """Whether it ends with 0."""
    try:
        return outcome(*command, seconds=seconds)[0] == 0
    except Failed:
        return False


def end(process: subprocess.Popen[str], ask: signal.Signals = signal.SIGTERM, seconds: float = LEAVE_SECONDS) -> None:
    """The program and what it has started: asked to leave, then killed."""
    if process.poll() is not None:
        return
    _signal(process, ask)
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    _signal(process, signal.SIGKILL)
    process.wait(LEAVE_SECONDS)


def heed_signals() -> None:
    """SIGTERM and Ctrl-C become SystemExit in the main thread, so that every `finally` gets its turn, undisturbed."""

    def leave(number: int, _: FrameType | None) -> None:
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        print(f"\n{signal.Signals(number).name}: clearing up", flush=True)
        raise SystemExit(128 + number)

    assert threading.current_thread() is threading.main_thread()
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, leave)


def _started(
    command: tuple[str, ...], env: Mapping[str, str] | None, *, piped: bool, reads: bool = False
) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE if piped else None
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE if reads else subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
            env={**os.environ, **(env or {})},
            # A session of its own: Ctrl-C reaches us alone, and we end it with all that it started.
            start_new_session=True,
        )
    except OSError as missing:
        raise Failed(f"{command[0]}: {missing.strerror}") from missing


def _signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
