"""Tables: what a benchmark found, what it was to find, as text for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

Cell = str | float | int | None


@dataclass(frozen=True, slots=True)
class ResultTarget:
    """What was to be reached: `value` at most `limit`."""

    text: str
    value: float
    limit: float
    unit: str = ""

    @property
    def met(self) -> bool:
        return self.value <= self.limit

    def __str__(self) -> str:
        verdict = "met" if self.met else "NOT MET"
        return f"target: {self.text}: {shown(self.value)}{self.unit} (limit {shown(self.limit)}{self.unit}): {verdict}"


@dataclass(frozen=True, slots=True)
class ResultTable:
    """One table. `samples` are single measurements, to look at them again; they are not printed."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    targets: Sequence[ResultTarget] = ()
    notes: Sequence[str] = ()
    samples: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "targets": [{**asdict(one), "met": one.met} for one in self.targets]}


def show(table: ResultTable, console: Console) -> None:
    """Prints it: numbers to the right, targets last."""
    grid = RichTable(box=box.SIMPLE_HEAD, title=table.title, title_justify="left", title_style="bold", pad_edge=False)
    for place, column in enumerate(table.columns):
        grid.add_column(column, justify="left" if place == 0 else "right", overflow="fold")
    for row in table.rows:
        grid.add_row(*(shown(cell) for cell in row))
    console.print(grid)
    for note in table.notes:
        console.print(f"  {note}", highlight=False, markup=False)
    for target in table.targets:
        console.print(f"  {target}", style="green" if target.met else "red", highlight=False, markup=False)
    console.print()


def shown(cell: Cell) -> str:
    """Numbers with three digits that count."""
    match cell:
        case None:
            return "-"
        case str():
            return cell
        case int():
            return f"{cell:,}"
        case _ if abs(cell) >= 100:
            return f"{cell:,.0f}"
        case _:
            return f"{cell:.3g}"
