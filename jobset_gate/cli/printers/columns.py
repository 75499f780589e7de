"""Columns of text in the style of kubectl: as wide as their widest cell, three blanks between them."""

from collections.abc import Iterable, Sequence

from jobset_gate.objects import terminal_text

_GAP = "   "


def widths(lines: Sequence[Sequence[str]]) -> list[int]:
    """Of each column; the lines are equally long."""
    return [max(len(cell_text(it)) for it in column) for column in zip(*lines, strict=True)]


def join_cells(cells: Iterable[str], widths: Iterable[int]) -> str:
    """One line; it may end before the last column."""
    return _GAP.join(cell_text(it).ljust(width) for it, width in zip(cells, widths, strict=False)).rstrip()


def cell_text(text: str) -> str:
    """Others' words may hold line breaks and controls."""
    return text if text.isprintable() else terminal_text.line(text)


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """All of them."""
    wide = widths(lines)
    return [join_cells(line, wide) for line in lines]
