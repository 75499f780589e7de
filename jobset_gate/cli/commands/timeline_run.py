"""What `timeline` does: reads the gang, works it out, and says it in the wanted form."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jobset_gate.cli import settings_file
from jobset_gate.cli.commands.timeline import TimelineFormat
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch import jobset_controller, timeline
from jobset_gate.cli.fetch.objects import ObjectNotFound
from jobset_gate.cli.fetch.permissions import Permissions
from jobset_gate.cli.manifests.writer import to_json, to_yaml
from jobset_gate.cli.prices import parse_prices
from jobset_gate.cli.printers import output
from jobset_gate.cli.printers.timeline_bars import timeline_bars
from jobset_gate.cli.printers.timeline_json import timeline_json
from jobset_gate.cli.printers.timeline_table import timeline_table
from jobset_gate.cli.resource_args import ResourceArgument, ResourceKind, parse_resource
from jobset_gate.explain.model import ControllerStatus
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.objects import terminal_text
from jobset_gate.settings import Groups
from jobset_gate.timeline.model import Timeline
from jobset_gate.timeline.svg import timeline_svg
from jobset_gate.timeline.totals import IdleDevices, idle_devices


@dataclass(frozen=True, slots=True)
class TimelineOptions:
    """What the command line asks for."""

    name: str
    namespace: str | None = None
    output: TimelineFormat = TimelineFormat.TABLE
    file: Path | None = None
    every: bool = False
    price: Sequence[str] = ()
    config: Path | None = None


async def run(wanted: TimelineOptions, *, kubeconfig: str | None, context: str | None) -> ExitCode:
    """Prints it, or writes it into the file. What a person has to know besides goes to standard error."""
    what = parse_resource(wanted.name)
    if what.kind is ResourceKind.POD:
        raise CommandError(f"{wanted.name}: timelines are those of JobSets and of pod groups", ExitCode.USAGE)
    priced = parse_prices(wanted.price)
    settings = settings_file.read(wanted.config).admission.groups
    reached = await access.load_access(kubeconfig, context)
    asking = _TimelineTarget(wanted.namespace or reached.namespace, what, settings, reached.namespace)
    rights = Permissions()
    async with Client(reached) as client:
        found, looks = await _found(client, asking, rights)
    if len(found) > 1 and wanted.output is TimelineFormat.SVG:
        raise CommandError(f"{wanted.name}: {len(found)} groups of that name: a picture is of one", ExitCode.ERROR)
    _out(_texts([(it, idle_devices(it, priced)) for it in found], wanted), wanted.file)
    for line in rights.missing:
        output.err(f"warning: {line}")
    if looks is not None and not looks.leads:
        output.err(f"warning: {looks.told}")
    return ExitCode.OK


@dataclass(frozen=True, slots=True)
class _TimelineTarget:
    namespace: str
    what: ResourceArgument
    settings: Groups
    home: str
    """Where else a controller's Lease may be."""


async def _found(
    client: Client, it: _TimelineTarget, rights: Permissions
) -> tuple[list[Timeline], ControllerStatus | None]:
    """What has that name, a JobSet first; and who decides, where that is of interest."""
    if it.what.kind is not ResourceKind.POD_GROUP:
        try:
            found = await timeline.fetch_gang_timeline(client, it.namespace, it.what.name, rights)
        except ObjectNotFound:
            if it.what.kind is ResourceKind.JOBSET:
                raise
        else:
            decided = found.verdict or found.finished
            return [found], None if decided else await jobset_controller.jobset_controller_status(client, it.home)
    groups, looks = await _groups(client, it, rights)
    placed = all(group.placing is not None and group.placing.satisfied is not None for group in groups)
    return groups, None if placed else looks


async def _groups(client: Client, it: _TimelineTarget, rights: Permissions) -> tuple[list[Timeline], ControllerStatus]:
    # Imported late: whoever asks about a JobSet need not wait for it.
    from jobset_gate.cli.fetch import pod_group_timeline  # noqa: PLC0415

    try:
        told, looks = await pod_group_timeline.reports(client, it.namespace, rights, it.settings, it.home)
        return await pod_group_timeline.timelines(client, it.namespace, it.what.name, told, rights), looks
    except ObjectNotFound as absent:
        if it.what.kind is ResourceKind.POD_GROUP:
            raise
        name, namespace = it.what.name, it.namespace
        raise ObjectNotFound(
            f"JobSet {name} not found in namespace {namespace}, and no pod group of that name either"
        ) from absent


def _texts(found: Sequence[tuple[Timeline, Sequence[IdleDevices]]], wanted: TimelineOptions) -> str:
    if wanted.output in (TimelineFormat.JSON, TimelineFormat.YAML):
        return (to_json if wanted.output is TimelineFormat.JSON else to_yaml)(
            [timeline_json(it, stood) for it, stood in found]
        )
    return "\n".join(_text(it, stood, wanted) for it, stood in found)


def _text(found: Timeline, stood: Sequence[IdleDevices], wanted: TimelineOptions) -> str:
    match wanted.output:
        case TimelineFormat.SVG:
            return timeline_svg(found, stood)
        case TimelineFormat.BARS:
            return terminal_text.lines(timeline_bars(found, stood, shutil.get_terminal_size().columns))
        case _:
            return terminal_text.lines(
                timeline_table(found, stood, wide=wanted.output is TimelineFormat.WIDE, every=wanted.every)
            )


def _out(text: str, file: Path | None) -> None:
    if file is None:
        output.document(text)
        return
    file.write_bytes(text.encode())
