"""One child process with a log file: started on a tether, known dead when `stop` returns."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_PARENT_DEATH = str(Path(__file__).with_name("parent_death.py"))
_COLLECTS_SELDOM = {"GOGC": "300"}
"""For Go's garbage collector: by default a fifth of what an API server does for a test is its work."""


class ChildProgramDied(Exception):
    """A program that should run does not; the message ends with the tail of its log."""


class ChildProgram:
    """Start it from the main thread: the tether ends with the thread that started it."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self.command = command
        self.log = log
        with log.open("ab") as out:
            self._child = subprocess.Popen(  # noqa: S603 - a program of the control plane
                [sys.executable, "-IS", _PARENT_DEATH, str(os.getpid()), *command],
                env={**os.environ, **_COLLECTS_SELDOM},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for pytest, which then stops us in order
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    def check(self) -> None:
        """Died if it has ended."""
        if (code := self._child.poll()) is not None:
            raise ChildProgramDied(f"{self.name} ended with code {code}:\n{self.tail()}")

    def tail(self, lines: int = 25) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self) -> None:
        """Kill and wait until it is gone. No draining: whatever it holds is thrown away with its folder."""
        self._child.kill()
        self._child.wait()
