"""What `get` prints: all objects once, or with `-w` each one again whenever it has changed; in any of the forms."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jobset_gate.cli.options import OutputFormat
from jobset_gate.cli.printers import output
from jobset_gate.cli.printers.documents import document_text

DELETED: Final = "Deleted"
"""The state of an object that is gone, printed once."""
_VOLATILE: Final = frozenset({"LEFT", "AGE", "at", "secondsLeft"})
"""Columns and fields that change with the time alone."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PrintedItem:
    """One object in all forms."""

    key: tuple[str, ...]
    cells: Mapping[str, str]
    """By the titles of the columns; the same titles for all."""
    document: Callable[[], Json]
    name: str


class ItemPrinter:
    """Prints to standard output; columns keep their width, or grow."""

    def __init__(self, form: OutputFormat, kind: str, state: str, field: str, *, headers: bool) -> None:
        """`kind` is that of a list of all; `state` the column and `field` the field that say how one is."""
        self._form, self._kind, self._state, self._field, self._headers = form, kind, state, field, headers
        self._widths: list[int] = []
        self._documents = 0
        self._last: dict[tuple[str, ...], tuple[PrintedItem, object]] = {}

    def print_list(self, items: Sequence[PrintedItem]) -> None:
        """All of them, as one document where it is one for programs."""
        if self._form in (OutputFormat.JSON, OutputFormat.YAML):
            listed = {"kind": self._kind, "items": [it.document() for it in items]}
            output.document(document_text(self._form, listed))
        else:
            self._print(items)

    def print_changes(self, items: Iterable[PrintedItem]) -> None:
        """What differs from what was printed last, given everything that there is."""
        found = {it.key: it for it in items}
        gone = [self._deleted(self._last.pop(key)[0]) for key in [*self._last] if key not in found]
        changed = []
        for key, item in found.items():
            lasting = self._lasting(item)
            if key not in self._last or self._last[key][1] != lasting:
                changed.append(item)
            self._last[key] = item, lasting
        self._print([*gone, *changed])

    def _lasting(self, item: PrintedItem) -> object:
        if self._form in (OutputFormat.TABLE, OutputFormat.WIDE):
            return {title: cell for title, cell in item.cells.items() if title not in _VOLATILE}
        return {field: value for field, value in item.document().items() if field not in _VOLATILE}

    def _deleted(self, item: PrintedItem) -> PrintedItem:
        document = item.document() | {self._field: DELETED}
        return PrintedItem(item.key, {**item.cells, self._state: DELETED}, lambda: document, item.name)

    def _print(self, items: Sequence[PrintedItem]) -> None:
        match self._form:
            case OutputFormat.JSON:
                output.document(document_text(self._form, *(it.document() for it in items)))
            case OutputFormat.YAML:
                output.document("".join(map(self._yaml, items)))
            case OutputFormat.NAME:
                output.out("".join(it.name + "\n" for it in items))
            case _:
                output.out(self._table(items))

    def _yaml(self, item: PrintedItem) -> str:
        self._documents += 1
        return ("---\n" if self._documents > 1 else "") + document_text(self._form, item.document())

    def _table(self, items: Sequence[PrintedItem]) -> str:
        lines = [[*it.cells.values()] for it in items]
        if items and not self._widths:
            titles = [*items[0].cells]
            self._widths = [len(it) for it in titles]
            lines[:0] = [titles] if self._headers else []
        for cells in lines:
            self._widths = [
                max(width, len(output.cell_text(cell))) for width, cell in zip(self._widths, cells, strict=True)
            ]
        return "".join(output.join_cells(cells, self._widths) + "\n" for cells in lines)
