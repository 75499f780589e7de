"""The entry point of `jobset-gate` and `kubectl jobset-gate`: a failure is one clear line."""

import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from jobset_gate.cli import exits
from jobset_gate.cli.app import COMPLETION, GlobalOptions, build
from jobset_gate.cli.exits import CommandError, ExitCode, first_cause
from jobset_gate.cli.printers import output
from jobset_gate.errors import JobsetGateError
from jobset_gate.objects import terminal_text

_SHORT = re.compile(r"(-[A-Za-z])=(.*)", re.DOTALL)
DEBUG_VARIABLE = "JOBSET_GATE_DEBUG"
COMPLETE = "__complete"
"""What kubectl's plugins call the question what may come next; the words follow."""
_NO_FILES = ":4"
"""The last line of the answer: kubectl offers no files as well."""


def main(arguments: Sequence[str] | None = None, program: str | None = None) -> NoReturn:
    """Run a command line (default: the process's own) and exit with its code."""
    _open_streams()
    name = program or program_name(sys.argv[0])
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == [COMPLETE]:
        _complete(words[1:])
    state = GlobalOptions(debug=os.environ.get(DEBUG_VARIABLE, "").lower() not in ("", "0", "false"))
    try:
        build(name, state)(args=_split_short_options(words), prog_name=name)
    except Exception as problem:
        if state.debug:
            raise
        cause = first_cause(problem)
        exits.print_error(error_line(cause, name))
        if not isinstance(cause, CommandError):
            sys.exit(ExitCode.ERROR)
        for hint in cause.hints:
            output.err(f"  {hint}")
        sys.exit(cause.code)
    sys.exit(ExitCode.OK)


def _split_short_options(words: Sequence[str]) -> list[str]:
    """`-o=json` is `-o json` to kubectl."""
    last = [*words, "--"].index("--")
    split = (_SHORT.fullmatch(it) for it in words[:last])
    found = [part for it, short in zip(words, split, strict=False) for part in (short.groups() if short else (it,))]
    return [*found, *words[last:]]


def complete() -> NoReturn:
    """`kubectl_complete-jobset_gate`, which kubectl runs for `kubectl jobset-gate <TAB>`."""
    main([COMPLETE, *sys.argv[1:]])


def _complete(words: Sequence[str]) -> NoReturn:
    """Prints each of the words that fit the last one, with a tab and what it does; then how kubectl takes them."""
    line = shlex.join(["jobset-gate", *words[:-1]]) + (f" {words[-1]}" if words else " ")
    asked = {COMPLETION: "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args", "_TYPER_COMPLETE_ARGS": line}
    os.environ.update(asked)
    try:
        build("jobset-gate", GlobalOptions())(args=[], prog_name="jobset-gate")
    finally:
        output.out(f"{_NO_FILES}\n")
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


def error_line(problem: Exception, program: str) -> str:
    """An error as one line. One that nobody foresaw says what it is and how to see where it happened."""
    text = terminal_text.line(str(problem)) or type(problem).__name__
    if isinstance(problem, OSError):
        return f"{problem.filename}: {problem.strerror}" if problem.filename and problem.strerror else text
    if isinstance(problem, JobsetGateError):
        return f"{problem.hint}: {text}" if problem.hint else text
    return f"internal error: {type(problem).__name__}: {text} (run `{program} --debug ...` for a traceback)"
