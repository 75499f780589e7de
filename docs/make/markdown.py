"""Markdown as the pages need it: a heading that says where the page comes from, tables, spans of code."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

WIDTH: Final = 120


def page(title: str, source: str, *parts: str) -> str:
    """A whole page. `source`: the files that it follows from."""
    origin = f"<!-- Written by `make reference` from {source}: change it there. -->"
    return "\n\n".join([f"# {title}", origin, *(part.strip("\n") for part in parts if part)]) + "\n"


def paragraph(text: str) -> str:
    """Wrapped as the other documents are."""
    return "\n".join(textwrap.wrap(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; bars and line ends within cells are taken care of."""
    lines = [_row(head), "|" + "---|" * len(head), *(_row(row) for row in rows)]
    return "\n".join(lines)


def code(text: str) -> str:
    """A span of code; nothing of nothing."""
    return f"`{text}`" if text else ""


def block(text: str, language: str = "") -> str:
    """A block of code."""
    return f"```{language}\n{text.strip()}\n```"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_cell(it) for it in cells) + " |"


def _cell(text: str) -> str:
    parts = " ".join(text.split()).replace("|", "\\|").split("`")
    # Between the spans of code a bracket would begin an element of HTML, which is shown as nothing.
    return "`".join(it if number % 2 else it.replace("<", "&lt;") for number, it in enumerate(parts))
