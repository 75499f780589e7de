"""What `timeline` does: reads the gang, works it out, and says it in the wanted form."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jobset_gate import terminal_text
from jobset_gate.cli import settings_file
from jobset_gate.cli.commands.timeline import Output
from jobset_gate.cli.documents.writing import to_json, to_yaml
from jobset_gate.cli.exits import Exit, Failed
from jobset_gate.cli.looking import keeper
from jobset_gate.cli.looking.objects import Absent
from jobset_gate.cli.looking.rights import Rights
from jobset_gate.cli.looking.subjects import Named, What, named
from jobset_gate.cli.telling import output
from jobset_gate.cli.timeline import reading
from jobset_gate.cli.timeline.bars import bars
from jobset_gate.cli.timeline.documents import document
from jobset_gate.cli.timeline.prices import prices
from jobset_gate.cli.timeline.table import table
from jobset_gate.explained import Controller
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.picture import picture
from jobset_gate.settings import Groups
from jobset_gate.timeline import Timeline
from jobset_gate.timeline_sums import Idle, idle


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks for."""

    name: str
    namespace: str | None = None
    output: Output = Output.TABLE
    file: Path | None = None
    every: bool = False
    price: Sequence[str] = ()
    config: Path | None = None


async def run(wanted: Wanted, *, kubeconfig: str | None, context: str | None) -> Exit:
    """Prints it, or writes it into the file. What a person has to know besides goes to standard error."""
    what = named(wanted.name)
    if what.what is What.POD:
        raise Failed(f"{wanted.name}: timelines are those of JobSets and of pod groups", Exit.USAGE)
    priced = prices(wanted.price)
    settings = settings_file.read(wanted.config).admission.groups
    reached = await access.discover(kubeconfig, context)
    asking = _Asking(wanted.namespace or reached.namespace, what, settings, reached.namespace)
    rights = Rights()
    async with Client(reached) as client:
        found, looks = await _found(client, asking, rights)
    if len(found) > 1 and wanted.output is Output.SVG:
        raise Failed(f"{wanted.name}: {len(found)} groups of that name: a picture is of one", Exit.ERROR)
    _out(_texts([(it, idle(it, priced)) for it in found], wanted), wanted.file)
    for line in rights.missing:
        output.err(f"warning: {line}")
    if looks is not None and not looks.leads:
        output.err(f"warning: {looks.told}")
    return Exit.OK


@dataclass(frozen=True, slots=True)
class _Asking:
    namespace: str
    what: Named
    settings: Groups
    home: str
    """Where else a controller's Lease may be."""


async def _found(client: Client, it: _Asking, rights: Rights) -> tuple[list[Timeline], Controller | None]:
    """What has that name, a JobSet first; and who decides, where that is of interest."""
    if it.what.what is not What.GROUP:
        try:
            found = await reading.timeline(client, it.namespace, it.what.name, rights)
        except Absent:
            if it.what.what is What.JOBSET:
                raise
        else:
            decided = found.verdict or found.finished
            return [found], None if decided else await keeper.controller(client, it.home)
    groups, looks = await _groups(client, it, rights)
    placed = all(group.placing is not None and group.placing.satisfied is not None for group in groups)
    return groups, None if placed else looks


async def _groups(client: Client, it: _Asking, rights: Rights) -> tuple[list[Timeline], Controller]:
    # Imported late: whoever asks about a JobSet need not wait for it.
    from jobset_gate.cli.timeline import group_reading  # noqa: PLC0415

    try:
        told, looks = await group_reading.reports(client, it.namespace, rights, it.settings, it.home)
        return await group_reading.timelines(client, it.namespace, it.what.name, told, rights), looks
    except Absent as absent:
        if it.what.what is What.GROUP:
            raise
        name, namespace = it.what.name, it.namespace
        raise Absent(
            f"JobSet {name} not found in namespace {namespace}, and no pod group of that name either"
        ) from absent


def _texts(found: Sequence[tuple[Timeline, Sequence[Idle]]], wanted: Wanted) -> str:
    if wanted.output in (Output.JSON, Output.YAML):
        return (to_json if wanted.output is Output.JSON else to_yaml)([document(it, stood) for it, stood in found])
    return "\n".join(_text(it, stood, wanted) for it, stood in found)


def _text(found: Timeline, stood: Sequence[Idle], wanted: Wanted) -> str:
    match wanted.output:
        case Output.SVG:
            return picture(found, stood)
        case Output.BARS:
            return terminal_text.lines(bars(found, stood, shutil.get_terminal_size().columns))
        case _:
            return terminal_text.lines(table(found, stood, wide=wanted.output is Output.WIDE, every=wanted.every))


def _out(text: str, file: Path | None) -> None:
    if file is None:
        output.document(text)
        return
    file.write_bytes(text.encode())
