"""How a command ends: the exit codes, and the error that carries one."""

from collections.abc import Callable
from enum import IntEnum

from jobset_gate.cli.printers import output
from jobset_gate.errors import JobsetGateError


class ExitCode(IntEnum):
    """What the shell gets. 130 (interrupted from the keyboard) and 143 (by SIGTERM) are the shell's own convention."""

    OK = 0
    """It is done, or true."""
    ERROR = 1
    """It could not be done, or what was looked for is wrong."""
    USAGE = 2
    """The command line itself is wrong; nothing was done."""
    TIMEOUT = 3
    """What was waited for has not come in time."""


class CommandError(JobsetGateError):
    """A command cannot do its work; the message is one clear sentence for the user."""

    def __init__(self, message: str, code: ExitCode = ExitCode.ERROR, hints: tuple[str, ...] = ()) -> None:
        """`hints`: further lines for a person, on what was tried and what to do."""
        super().__init__(message)
        self.code, self.hints = code, hints


def first_cause(problem: Exception) -> Exception:
    """The first error of what was raised together."""
    while isinstance(problem, ExceptionGroup):
        problem = problem.exceptions[0]
    return problem


def print_plain_error(text: str) -> None:
    """A failure as one line for a person."""
    output.err(f"error: {text}")


print_error: Callable[[str], None] = print_plain_error
"""How a failure is printed; logs.py replaces it where lines are for machines."""
