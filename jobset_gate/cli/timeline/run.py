"""What `timeline` does: reads the gang, works it out, and says it in the wanted form."""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from jobset_gate.cli.commands.timeline import Output
from jobset_gate.cli.documents.writing import to_json, to_yaml
from jobset_gate.cli.exits import Exit, Failed
from jobset_gate.cli.looking import keeper
from jobset_gate.cli.looking.rights import Rights
from jobset_gate.cli.looking.subjects import What, named
from jobset_gate.cli.timeline import reading
from jobset_gate.cli.timeline.bars import bars
from jobset_gate.cli.timeline.documents import document
from jobset_gate.cli.timeline.prices import prices
from jobset_gate.cli.timeline.table import table
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.picture import picture
from jobset_gate.timeline import Timeline
from jobset_gate.timeline_sums import Idle, idle


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks for."""

    jobset: str
    namespace: str | None = None
    output: Output = Output.TABLE
    file: Path | None = None
    every: bool = False
    price: Sequence[str] = ()


async def run(wanted: Wanted, *, kubeconfig: str | None, context: str | None) -> Exit:
    """Prints it, or writes it into the file. What a person has to know besides goes to standard error."""
    what = named(wanted.jobset)
    if what.what not in (What.ANY, What.JOBSET):
        raise Failed(f"{wanted.jobset}: timelines are those of JobSets; of pod groups there are none", Exit.USAGE)
    priced = prices(wanted.price)
    reached = await access.discover(kubeconfig, context)
    rights = Rights()
    async with Client(reached) as client:
        found = await reading.timeline(client, wanted.namespace or reached.namespace, what.name, rights)
        looks = None if found.verdict or found.finished else await keeper.controller(client, reached.namespace)
    _out(_text(found, idle(found, priced), wanted), wanted.file)
    for line in rights.missing:
        sys.stderr.write(f"warning: {line}\n")
    if looks is not None and not looks.leads:
        sys.stderr.write(f"warning: {looks.told}\n")
    return Exit.OK


def _text(found: Timeline, stood: Sequence[Idle], wanted: Wanted) -> str:
    match wanted.output:
        case Output.JSON:
            return to_json([document(found, stood)])
        case Output.YAML:
            return to_yaml([document(found, stood)])
        case Output.SVG:
            return picture(found, stood)
        case Output.BARS:
            return bars(found, stood, shutil.get_terminal_size().columns)
        case _:
            return table(found, stood, wide=wanted.output is Output.WIDE, every=wanted.every)


def _out(text: str, file: Path | None) -> None:
    if file is None:
        typer.echo(text.encode(), nl=False)
        return
    file.write_bytes(text.encode())
