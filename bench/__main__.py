"""`python -m bench`: runs the benchmarks, prints their tables, writes them as JSON into bench-results/."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import abuse, admission, crowd, decode, growth, latency, machine, memory, report, stream, webhook, writes
from bench.report import ResultTable
from bench.scale import Scale

RESULTS = Path(__file__).parents[1] / "bench-results"
WIDTH = 120
"""Where standard output is no terminal."""

Benchmark = Callable[[Scale], Awaitable[list[ResultTable]]]


def benchmarks(*, real: bool) -> dict[str, Benchmark]:
    """By name, in the order in which they run."""
    return {
        decode.NAME: decode.run,
        latency.NAME: lambda scale: latency.run(scale, real=real),
        crowd.NAME: crowd.run,
        webhook.NAME: webhook.run,
        admission.NAME: lambda scale: admission.run(scale, real=real),
        growth.NAME: growth.run,
        writes.NAME: writes.run,
        memory.NAME: memory.run,
        stream.NAME: stream.run,
        abuse.NAME: abuse.run,
    }


async def run(chosen: dict[str, Benchmark], scale: Scale, console: Console) -> list[ResultTable]:
    """Prints each table as soon as it is there. One benchmark after the other if the figures are to mean something."""
    turn = asyncio.Semaphore(1 if scale.measures else len(chosen))
    tables: list[ResultTable] = []

    async def one(name: str, benchmark: Benchmark) -> None:
        async with turn:
            began = time.monotonic()
            print(f"{name} ...", file=sys.stderr, flush=True)
            for table in await benchmark(scale):
                report.show(table, console)
                tables.append(table)
            print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    async with asyncio.TaskGroup() as tasks:
        for each in chosen.items():
            tasks.create_task(one(*each))
    return tables


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 if everything ran, whether or not it was fast enough: a machine may be busy."""
    asked = _parser().parse_args(arguments)
    every = benchmarks(real=asked.real)
    chosen = {name: every[name] for name in asked.only or every}
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    found = machine.facts()
    console.print(machine.line(found), highlight=False)
    console.print()
    scale = Scale(asked.scale)
    tables = asyncio.run(run(chosen, scale, console))
    keep(tables, found, scale, asked.out, console)
    return 0


def keep(tables: list[ResultTable], found: Mapping[str, Any], scale: Scale, out: Path, console: Console) -> None:
    """Says which targets were missed, and writes figures that mean something into a file of the folder `out`."""
    missed = [f"{table.name}: {target}" for table in tables for target in table.targets if not target.met]
    targets = sum(len(table.targets) for table in tables)
    console.print(f"{targets - len(missed)} of {targets} targets met", highlight=False)
    for text in missed:
        console.print(f"  {text}", style="red", highlight=False, markup=False)
    if scale.measures:
        out.mkdir(parents=True, exist_ok=True)
        file = out / f"{found['time'].replace(':', '').removesuffix('+0000')}.json"
        written = {"machine": found, "scale": scale.factor, "tables": [table.plain() for table in tables]}
        file.write_text(json.dumps(written, indent=1) + "\n")
        print(f"written to {file}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--scale", type=positive, default=1.0, help="a part of everything: 0.01 is what CI runs")
    names = tuple(benchmarks(real=True))
    parser.add_argument("--only", action="append", choices=names, help="this one; may be given several times")
    parser.add_argument("--no-real", dest="real", action="store_false", help="without the real control plane")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the figures as JSON")
    return parser


def positive(text: str) -> float:
    """A scale, as it is given on the command line."""
    value = float(text)
    if not 0 < value <= 10:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 10")
    return value


if __name__ == "__main__":
    sys.exit(main())
