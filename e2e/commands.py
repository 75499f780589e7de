"""Runs other programs, bounded in time, and leaves none behind."""

import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType

SECONDS = 120.0
LEAVE_SECONDS = 10.0
CLEAR_UP_SECONDS = 45.0


class CommandFailed(Exception):
    """A program ended with another code than 0, or not in time; the message holds what it said."""


def run(*command: str, stdin: str | None = None, seconds: float = SECONDS, env: Mapping[str, str] | None = None) -> str:
    """What the program wrote to its standard output. Raises Failed."""
    code, out, err = outcome(*command, stdin=stdin, seconds=seconds, env=env)
    if code != 0:
        raise CommandFailed(f"{shlex.join(command)} ended with {code}: {err.strip() or out.strip()}")
    return out


def outcome(
    *command: str, stdin: str | None = None, seconds: float = SECONDS, env: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Its code, standard output and standard error. Raises Failed if it is not there or takes too long."""
    with _running(command, env, piped=True, reads=stdin is not None) as process:
        out, err = process.communicate(stdin, timeout=seconds)
    return process.returncode, out, err


def show(*command: str, seconds: float, env: Mapping[str, str] | None = None) -> int:
    """Its code; what it says goes to the terminal as it comes. Raises Failed if it takes too long.

    It is stopped by SIGINT, as a person at the terminal would: pytest then clears up behind its tests.
    """
    sys.stdout.flush()
    with _running(command, env, piped=False, ask=signal.SIGINT, timeout=CLEAR_UP_SECONDS) as process:
        return process.wait(timeout=seconds)


def works(*command: str, seconds: float = SECONDS) -> bool:
    """Whether it ends with 0."""
    try:
        return outcome(*command, seconds=seconds)[0] == 0
    except CommandFailed:
        return False


def handle_signals() -> None:
    """SIGTERM and Ctrl-C become SystemExit in the main thread, so that every `finally` gets its turn, undisturbed."""
    assert threading.current_thread() is threading.main_thread()
    for each in _HANDLED:
        signal.signal(each, _leave)


class _DeferredSignal:
    """Between a program's start and the moment from which it is sure to be ended, a signal has to wait."""

    deferring = False
    received: int | None = None


_HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _leave(number: int, _: FrameType | None) -> None:
    for each in _HANDLED:
        signal.signal(each, signal.SIG_IGN)
    if _DeferredSignal.deferring:
        _DeferredSignal.received = number
        return
    print(f"\n{signal.Signals(number).name}: clearing up", flush=True)
    raise SystemExit(128 + number)


def _stop_deferring() -> None:
    _DeferredSignal.deferring = False
    if _DeferredSignal.received is not None:
        raise SystemExit(128 + _DeferredSignal.received)


@contextmanager
def _running(
    command: tuple[str, ...],
    env: Mapping[str, str] | None,
    *,
    piped: bool,
    reads: bool = False,
    ask: signal.Signals = signal.SIGTERM,
    timeout: float = LEAVE_SECONDS,
) -> Iterator[subprocess.Popen[str]]:
    """The program, in a session of its own: Ctrl-C reaches us alone, and we end it with all that it started."""
    pipe = subprocess.PIPE if piped else None
    stdin = subprocess.PIPE if reads else subprocess.DEVNULL
    environ = {**os.environ, **(env or {})}
    _DeferredSignal.deferring = True
    try:
        process = subprocess.Popen(
            command, stdin=stdin, stdout=pipe, stderr=pipe, text=True, env=environ, start_new_session=True
        )
    except OSError as missing:
        _stop_deferring()
        raise CommandFailed(f"{command[0]}: {missing.strerror}") from missing
    with process:
        try:
            _stop_deferring()
            yield process
        except subprocess.TimeoutExpired as late:
            raise CommandFailed(f"{shlex.join(command)} took longer than {late.timeout:.0f}s") from late
        finally:
            _end(process, ask, timeout)


def _end(process: subprocess.Popen[str], ask: signal.Signals, timeout: float) -> None:
    """The program and what it has started: asked to leave, then killed. A process that has exited is not asked."""
    if process.poll() is not None:
        return  # e2e/airgap/setup leaves a daemon, for one
    _signal(process, ask)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout)
    _signal(process, signal.SIGKILL)
    process.wait(LEAVE_SECONDS)


def _signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
