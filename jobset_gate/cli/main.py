"""The entry point of `jobset-gate` and `kubectl jobset-gate`: a failure is one clear line."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from jobset_gate.cli import exits
from jobset_gate.cli.app import GlobalOptions, build
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.errors import JobsetGateError
from jobset_gate.objects import terminal_text

DEBUG_VARIABLE = "JOBSET_GATE_DEBUG"


def main(arguments: Sequence[str] | None = None, program: str | None = None) -> NoReturn:
    """Run a command line (default: the process's own) and exit with its code."""
    _open_streams()
    name = program or program_name(sys.argv[0])
    state = GlobalOptions(debug=os.environ.get(DEBUG_VARIABLE, "").lower() not in ("", "0", "false"))
    try:
        build(name, state)(args=arguments, prog_name=name)
    except Exception as problem:
        if state.debug:
            raise
        cause = first_cause(problem)
        exits.print_error(error_line(cause, name))
        sys.exit(cause.code if isinstance(cause, CommandError) else ExitCode.ERROR)
    sys.exit(ExitCode.OK)


def _open_streams() -> None:
    """The caller may have closed some; what is opened next, such as a connection, would take their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123 - for as long as we run


def program_name(path: str) -> str:
    """How the user called us: a kubectl plugin is a file whose name has `-` for blanks and `_` for `-`."""
    name = Path(path).name
    return "kubectl jobset-gate" if name.startswith("kubectl-") else "jobset-gate"


def first_cause(problem: Exception) -> Exception:
    """The first error of what was raised together."""
    while isinstance(problem, ExceptionGroup):
        problem = problem.exceptions[0]
    return problem


def error_line(problem: Exception, program: str) -> str:
    """An error as one line. One that nobody foresaw says what it is and how to see where it happened."""
    text = terminal_text.line(str(problem)) or type(problem).__name__
    if isinstance(problem, OSError):
        return f"{problem.filename}: {problem.strerror}" if problem.filename and problem.strerror else text
    if isinstance(problem, JobsetGateError):
        return f"{problem.hint}: {text}" if problem.hint else text
    return f"internal error: {type(problem).__name__}: {text} (run `{program} --debug ...` for a traceback)"
