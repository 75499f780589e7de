"""What `-o` of `get` may say, and `--sort-by`: kubectl's forms. JSONPath is imported where a path is given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

import typer

from jobset_gate.cli.exits import CommandError
from jobset_gate.errors import JobsetGateError

if TYPE_CHECKING:
    from jobset_gate.cli.printers.jsonpath import Path, Template

T = TypeVar("T")
NOTHING: Final = "<none>"


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
            return Output(form, template=_jsonpath().Template(value))
        return Output(form, columns=_columns(value))
    except JobsetGateError as wrong:
        raise typer.BadParameter(str(wrong)) from wrong


def parse_sort_by(text: str) -> Path:
    """Raises BadParameter."""
    try:
        path: Path = _jsonpath().parse_path(text)
    except JobsetGateError as wrong:
        raise typer.BadParameter(str(wrong)) from wrong
    return path


def column_cells(columns: dict[str, Path], document: Any) -> dict[str, str]:
    """By title. Raises BadPath."""
    found = {title: path.find(document, document) for title, path in columns.items()}
    return {title: ",".join(map(_jsonpath().value_text, values)) or NOTHING for title, values in found.items()}


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
    words = re.split(r"(\d+)", _jsonpath().value_text(value))  # node-2 comes before node-10
    return 2, [(int(it), "") if it.isdecimal() else (-1, it) for it in words]


def _columns(text: str) -> dict[str, Path]:
    """`NAME:.name,STATE:.state`. Raises BadPath, and BadParameter."""
    found = {}
    for each in text.split(","):
        title, colon, path = each.partition(":")
        if not (title and colon and path):
            raise typer.BadParameter(f"{text}: a column is TITLE:PATH, such as NAME:.name")
        found[title] = _jsonpath().parse_path(path)
    return found


def _jsonpath() -> Any:
    return import_module("jobset_gate.cli.printers.jsonpath")
