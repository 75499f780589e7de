"""What `get` prints: all objects once, or with `-w` each one again whenever it has changed; in any of the forms."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jobset_gate.cli.printers import output
from jobset_gate.cli.printers.documents import document_text
from jobset_gate.cli.printers.formats import Output, OutputFormat, column_cells

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

    def __init__(self, asked: Output, kind: str, state: str, field: str, *, headers: bool) -> None:
        """`kind` is that of a list of all; `state` the column and `field` the field that say how one is."""
        self._asked, self._form, self._kind, self._headers = asked, asked.form, kind, headers
        self._state, self._field = state, field
        self._widths: list[int] = []
        self._documents = 0
        self._last: dict[tuple[str, ...], tuple[PrintedItem, object]] = {}

    def print_list(self, items: Sequence[PrintedItem]) -> None:
        """All of them, as one document where it is one for programs."""
        listed = {"kind": self._kind, "items": [it.document() for it in items]}
        if self._form in (OutputFormat.JSON, OutputFormat.YAML):
            output.document(document_text(self._form, listed))
        elif self._asked.template is not None:
            output.document(self._asked.template.render(listed))
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
            case OutputFormat.JSONPATH if self._asked.template is not None:
                output.document("".join(map(self._asked.template.render, (it.document() for it in items))))
            case _:
                output.out(self._table(items))

    def _yaml(self, item: PrintedItem) -> str:
        self._documents += 1
        return ("---\n" if self._documents > 1 else "") + document_text(self._form, item.document())

    def _table(self, items: Sequence[PrintedItem]) -> str:
        shown = [column_cells(self._asked.columns, it.document()) if self._asked.columns else it.cells for it in items]
        lines = [[*it.values()] for it in shown]
        if items and not self._widths:
            titles = [*shown[0]]
            self._widths = [len(it) for it in titles]
            lines[:0] = [titles] if self._headers else []
        for cells in lines:
            self._widths = [
                max(width, len(output.cell_text(cell))) for width, cell in zip(self._widths, cells, strict=True)
            ]
        return "".join(output.join_cells(cells, self._widths) + "\n" for cells in lines)
