"""The one place that writes to standard output and standard error, so that no text of others steers a terminal."""

import sys

import typer

from jobset_gate.cli.printers import terminal
from jobset_gate.cli.printers.terminal import PLAIN_STYLE, TerminalStyle
from jobset_gate.objects import terminal_text


def out(text: str, look: TerminalStyle = PLAIN_STYLE) -> None:
    """Whole lines for people; of controls only the colours of `look` get through."""
    document(terminal.escape_controls(text, look))


def document(text: str) -> None:
    """A document for programs, in which controls are escaped already; UTF-8, whatever the locale says."""
    typer.echo(text.encode(), nl=False)


def err(line: str) -> None:
    """One line on standard error."""
    sys.stderr.write(terminal_text.lines(line) + "\n")
