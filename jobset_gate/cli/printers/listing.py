"""What `get` prints: the columns of gangs and pod groups, kubectl's forms of `-o`, and with `-w` what has changed."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeVar

import typer

from jobset_gate.barrier import messages
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.printers import output
from jobset_gate.cli.printers.documents import document_text
from jobset_gate.cli.printers.jsonpath import BadPath, Path, Template, parse_path, value_text
from jobset_gate.explain.model import GIVEN_UP_STATES, Explanation
from jobset_gate.explain.text import format_duration
from jobset_gate.objects import terminal_text
from jobset_gate.objects.unstructured import Json
from jobset_gate.podgroups.status import GroupStatus

T = TypeVar("T")
NO_VALUE: Final = "<none>"


class OutputFormat(StrEnum):
    """The form of what `get` prints."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    JSONPATH = "jsonpath"
    CUSTOM_COLUMNS = "custom-columns"


WITH_VALUE: Final = (OutputFormat.JSONPATH, OutputFormat.CUSTOM_COLUMNS)
CHOICES: Final = "|".join(f"{it}=..." if it in WITH_VALUE else str(it) for it in OutputFormat)


@dataclass(frozen=True, slots=True)
class Output:
    """A form, with what it needs."""

    form: OutputFormat = OutputFormat.TABLE
    template: Template | None = None
    columns: dict[str, Path] = field(default_factory=dict)
    """Of custom-columns, by title."""


def parse_output(given: str | Output) -> Output:
    """Raises BadParameter."""
    if isinstance(given, Output):
        return given
    name, equals, value = given.partition("=")
    if name not in [*OutputFormat] or bool(equals) is not (name in WITH_VALUE):
        raise typer.BadParameter(f"{given!r} is not one of {CHOICES}")
    form = OutputFormat(name)
    if form not in WITH_VALUE:
        return Output(form)
    try:
        if form is OutputFormat.JSONPATH:
            return Output(form, template=Template(value))
        return Output(form, columns=_columns(value))
    except BadPath as wrong:
        raise typer.BadParameter(str(wrong)) from wrong


def parse_sort_by(text: str) -> Path:
    """Raises BadParameter."""
    try:
        return parse_path(text)
    except BadPath as wrong:
        raise typer.BadParameter(str(wrong)) from wrong


def column_cells(columns: dict[str, Path], document: Any) -> dict[str, str]:
    """By title. Raises BadPath."""
    found = {title: path.find(document, document) for title, path in columns.items()}
    return {title: ",".join(map(value_text, values)) or NO_VALUE for title, values in found.items()}


def sort_documents(items: Sequence[tuple[Any, T]], path: Path) -> list[T]:
    """The items by the value at the path in their documents; those without one come first, as in kubectl.

    Raises CommandError if no document has it.
    """
    keyed = [(path.find(document, document), item) for document, item in items]
    if keyed and not any(values for values, _ in keyed):
        raise CommandError(f"couldn't find any field with path {path.text!r} in the list of objects")
    return [item for _, item in sorted(keyed, key=lambda it: _sort_key(it[0]))]


def _sort_key(values: list[Any]) -> tuple[int, Any]:
    value = values[0] if values else None
    if value is None:
        return 0, 0
    if isinstance(value, int | float):
        return 1, value
    words = re.split(r"(\d+)", value_text(value))  # node-2 comes before node-10
    return 2, [(int(it), "") if it.isdecimal() else (-1, it) for it in words]


def _columns(text: str) -> dict[str, Path]:
    """`NAME:.name,STATE:.state`. Raises BadPath, and BadParameter."""
    found = {}
    for each in text.split(","):
        title, colon, path = each.partition(":")
        if not (title and colon and path):
            raise typer.BadParameter(f"{text}: a column is TITLE:PATH, such as NAME:.name")
        found[title] = parse_path(path)
    return found


# --- All at once, or what has changed --------------------------------------------------------------------------------

DELETED: Final = "Deleted"
"""The state of an object that is gone, printed once."""
_VOLATILE: Final = frozenset({"LEFT", "AGE", "at", "secondsLeft"})
"""Columns and fields that change with the time alone."""


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


# --- The columns -----------------------------------------------------------------------------------------------------

NOTHING: Final = "-"
_UNKNOWN: Final = "<unknown>"
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_AGES: Final = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
)
"""Below so many seconds: the unit and its letter, and the smaller unit that follows."""


def gang_cells(it: Explanation, created: float, *, namespaces: bool, kinds: bool, wide: bool) -> dict[str, str]:
    """By title, as far as they are shown. `created` in seconds, 0 if it is not known."""
    cells = {"NAMESPACE": it.namespace} if namespaces else {}
    cells |= {"KIND": it.kind, "SOURCE": it.source or NOTHING} if kinds else {}
    cells |= {
        "NAME": it.name,
        "STATE": str(it.state),
        "STARTED": f"{'?' if it.started is None else it.started}/{it.expected or '?'}",
        "LEFT": NOTHING if it.left is None else format_duration(it.left),
        "MISSING": _missing(it),
        "AGE": _since(created, it.now),
    }
    if wide:
        if kinds:
            cells["OWNER"] = f"{it.owner.kind}/{it.owner.name}" if it.owner is not None else NOTHING
        message = it.message or next((one.message for one in it.missing if one.message), "")
        cells["TIMEOUT"] = NOTHING if it.timeout is None else format_duration(it.timeout)
        cells["MESSAGE"] = terminal_text.line(message) or NOTHING
    return cells


def pod_group_cells(status: GroupStatus, now: float, *, namespaces: bool, wide: bool) -> dict[str, str]:
    """By title, as far as they are shown."""
    counts = status.counts
    cells = {"NAMESPACE": status.key.namespace} if namespaces else {}
    cells |= {
        "NAME": group_name(status),
        "WAY": ",".join(status.formats) or str(status.key.flavor),
        "BOUND/MINIMUM": f"{counts.bound}/{counts.minimum or '?'}",
        "PHASE": str(status.phase),
        "REASON": status.reason,
        "AGE": _since(status.created, now),
    }
    if wide:
        cells["MEMBERS"], cells["RUNNING"] = str(counts.present), str(counts.running)
        cells["MESSAGE"] = terminal_text.line(status.message)
    return cells


def group_name(status: GroupStatus) -> str:
    """Pods that name a group by an empty value have none."""
    return status.key.name or "<none>"


def age(seconds: float) -> str:
    """As kubectl has it: the larger the time, the coarser."""
    whole = max(0, int(seconds))
    for limit, unit, letter, part, rest in _AGES:
        if whole < limit:
            left = whole % unit // part if part else 0
            return f"{whole // unit}{letter}" + (f"{left}{rest}" if left else "")
    return f"{whole // _DAY}d"


def _since(created: float, now: float) -> str:
    return age(now - created) if created else _UNKNOWN


def _missing(it: Explanation) -> str:
    """`2 Unscheduled,1 ImagePull`: without blanks after commas, so that it stays one column."""
    counts: Counter[str] = messages.parse_missing(it.message) if it.state in GIVEN_UP_STATES else Counter()
    for one in it.missing:
        counts[one.reason] += one.count
    return ",".join(f"{many} {reason}" for reason, many in counts.most_common()) or NOTHING
