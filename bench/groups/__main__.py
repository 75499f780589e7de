"""`python -m bench.groups`: how fast groups are placed, and how long a decision takes (make bench-groups)."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import machine, report
from bench.__main__ import RESULTS, WIDTH, keep, positive
from bench.groups import decision, placement
from bench.report import ResultTable
from bench.scale import Scale

RUNS = 5
FEWER_RUNS = 3
"""Of a tenth."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 if everything ran, whether or not it was fast enough: a machine may be busy."""
    asked = _parser().parse_args(arguments)
    scale = Scale(asked.scale)
    runs = asked.runs or (RUNS if asked.scale > 0.1 else FEWER_RUNS if scale.measures else 1)
    every: dict[str, Callable[[], Coroutine[Any, Any, list[ResultTable]]]] = {
        decision.NAME: lambda: decision.run(scale),
        placement.NAME: lambda: placement.run(scale, runs),
    }
    console = Console(width=None if sys.stdout.isatty() else WIDTH + 10)
    found = machine.facts()
    console.print(machine.line(found), highlight=False)
    tables: list[ResultTable] = []
    for name in asked.only or every:
        began = time.monotonic()
        print(f"{name} ...", file=sys.stderr, flush=True)
        for table in asyncio.run(every[name]()):
            report.show(table, console)
            tables.append(table)
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    keep(tables, found, scale, asked.out, console)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.groups", description=__doc__)
    parser.add_argument("--scale", type=positive, default=1.0, help="a part of everything: 0.01 is what CI runs")
    parser.add_argument("--runs", type=int, help=f"of each way; {RUNS}, of a tenth {FEWER_RUNS}, of less 1")
    names = (decision.NAME, placement.NAME)
    parser.add_argument("--only", action="append", choices=names, help="this one; may be given several times")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the figures as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
