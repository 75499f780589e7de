"""docs/reference/exit-codes.md: how the commands and the barrier end."""

import re
from importlib.resources import files
from typing import Final

from docs.make import sentences
from docs.make.markdown import code, page, paragraph, table
from jobset_gate import names
from jobset_gate.cli import exits

_SCRIPT: Final = re.compile(r"^# Exit codes: (.+)\.$", re.MULTILINE)


def text() -> str:
    """The page."""
    return page(
        "Exit codes",
        "`jobset_gate/cli/exits.py` and `jobset_gate/injection/barrier.sh`",
        "## Of the commands",
        table(["code", "", "when"], _commands()),
        "## Of the barrier",
        paragraph(
            f"What the init container `{names.BARRIER_CONTAINER}` ends with, and what podFailurePolicies can ask for: "
            "[set a timeout](../howto/set-a-timeout.md)."
        ),
        table(["code", "when"], _barrier()),
    )


def closing() -> str:
    """The same in one sentence."""
    documented = sentences.of(exits.ExitCode)
    return (
        "## Exit codes\n\n"
        + "; ".join(f"`{it.value}`: {documented[it.name].rstrip('.')}" for it in exits.ExitCode)
        + "."
    )


def _commands() -> list[tuple[str, str, str]]:
    documented = sentences.of(exits.ExitCode)
    own = [(code(str(it.value)), it.name, documented[it.name]) for it in exits.ExitCode]
    convention = "the shell's own convention. `webhook` and `controller` end with 0 then."
    shells = [("130", f"Interrupted from the keyboard; {convention}"), ("143", f"Ended by SIGTERM; {convention}")]
    return [*own, *((code(number), "", meaning) for number, meaning in shells)]


def _barrier() -> list[tuple[str, str]]:
    found = _SCRIPT.search(files("jobset_gate.injection").joinpath("barrier.sh").read_text())
    if found is None:
        raise ValueError("barrier.sh does not say its exit codes")
    pairs = [it.strip().partition(" ") for it in found[1].split(",")]
    return [(code(number), f"{meaning[:1].upper()}{meaning[1:]}.") for number, _, meaning in pairs]
