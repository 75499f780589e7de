"""`timeline`: who was created, scheduled, pulled, started, released and running when, and what the wait has cost."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch.resolver import find, open_resolver
from jobset_gate.cli.fetch.timeline import fetch_gang_timeline, fetch_pod_group_timelines
from jobset_gate.cli.invocation import Invocation
from jobset_gate.cli.manifests.writer import to_json, to_yaml
from jobset_gate.cli.options import (
    Context,
    ControllerConfig,
    Kubeconfig,
    Namespace,
    ResourceKind,
    new_app,
    option,
    parse_resource,
    program,
)
from jobset_gate.cli.printers import output as out
from jobset_gate.cli.printers.timeline import timeline_bars, timeline_table
from jobset_gate.cli.printers.timeline_json import timeline_json
from jobset_gate.cli.runner import run_and_exit
from jobset_gate.objects import terminal_text
from jobset_gate.timeline.model import Timeline
from jobset_gate.timeline.summary import IdleDevices, idle_devices
from jobset_gate.timeline.svg import timeline_svg


class TimelineFormat(StrEnum):
    """The form of what is printed."""

    TABLE = "table"
    WIDE = "wide"
    BARS = "bars"
    JSON = "json"
    YAML = "yaml"
    SVG = "svg"


@dataclass(frozen=True, slots=True)
class TimelineOptions:
    """What the command line asks for."""

    name: str
    form: TimelineFormat
    file: Path | None
    every: bool
    price: Sequence[str]
    config: Path | None


app = new_app()


@app.command(
    "timeline",
    short_help="Show how a gang started: who came when.",
    epilog="Example: {program} timeline train -o svg --output-file train.svg",
)
def timeline(
    ctx: typer.Context,
    *,
    name: Annotated[
        str,
        typer.Argument(
            metavar="[jobset/|podgroup/]NAME",
            help="A JobSet; with a prefix a pod group. gang/NAME is a pod group, too.",
            show_default=False,
        ),
    ],
    namespace: Namespace = None,
    output: Annotated[
        TimelineFormat, typer.Option("-o", "--output", help="The form: bars are plain letters, svg is a picture.")
    ] = TimelineFormat.TABLE,
    output_file: Annotated[
        Path | None, option("--output-file", "FILE", "Write it there instead of printing it.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="A table of all pods, however many there are.")] = False,
    price: Annotated[
        list[str] | None,
        option(
            "--price",
            "[RESOURCE=]NUMBER",
            "What a device costs for an hour: of every kind, or of this one. May be repeated.",
        ),
    ] = None,
    config: ControllerConfig = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show the present attempt of a JobSet's gang, pod by pod: created, scheduled, barrier's image pulled, barrier
    started, released, running; the start skew; and how long devices stood idle at the gate. Of a pod group the
    present generation: created, opened, bound, running; when it was gathered; the skew of its placement; and how
    long devices had pods that could not work yet.

    Asks the API server only, so it works without a controller. The times of pulls come from Events, which live an hour;
    what the cluster no longer knows is shown as such, never guessed.
    """
    options = TimelineOptions(name, output, output_file, every, price or (), config)
    run_and_exit(run(options, Invocation(program(ctx), kubeconfig, context, namespace)))


async def run(options: TimelineOptions, invocation: Invocation) -> ExitCode:
    """Prints it, or writes it into the file. What the user has to know besides goes to standard error."""
    argument = parse_resource(options.name)
    if argument.kind is ResourceKind.POD:
        raise CommandError(f"{options.name}: timelines are those of JobSets and of pod groups", ExitCode.USAGE)
    prices = parse_prices(options.price)
    async with open_resolver(invocation, options.config) as resolver:
        jobset, pod_groups = partial(fetch_gang_timeline, resolver), partial(fetch_pod_group_timelines, resolver)
        found = await find(argument, jobset, pod_groups)
        controller = None if all(map(_is_decided, found)) else await resolver.controller()
    if len(found) > 1 and options.form is TimelineFormat.SVG:
        raise CommandError(f"{options.name}: {len(found)} groups of that name: a picture is of one", ExitCode.ERROR)
    text = _text([(it, idle_devices(it, prices)) for it in found], options)
    if options.file is None:
        out.document(text)
    else:
        options.file.write_bytes(text.encode())
    for line in resolver.permissions.missing:
        out.err(f"warning: {line}")
    if controller is not None and not controller.leads:
        out.err(f"warning: {controller.message}")
    return ExitCode.OK


def _is_decided(it: Timeline) -> bool:
    """Then it is of no interest whether a controller runs."""
    if it.placing is not None:
        return it.placing.satisfied is not None
    return bool(it.verdict) or it.finished


def _text(found: Sequence[tuple[Timeline, Sequence[IdleDevices]]], options: TimelineOptions) -> str:
    if options.form in (TimelineFormat.JSON, TimelineFormat.YAML):
        written = to_json if options.form is TimelineFormat.JSON else to_yaml
        return written([timeline_json(it, idle) for it, idle in found])
    return "\n".join(_text_of(it, idle, options) for it, idle in found)


def _text_of(found: Timeline, idle: Sequence[IdleDevices], options: TimelineOptions) -> str:
    match options.form:
        case TimelineFormat.SVG:
            return timeline_svg(found, idle)
        case TimelineFormat.BARS:
            return terminal_text.lines(timeline_bars(found, idle, shutil.get_terminal_size().columns))
        case form:
            wide = form is TimelineFormat.WIDE
            return terminal_text.lines(timeline_table(found, idle, wide=wide, every=options.every))


def parse_prices(given: Sequence[str]) -> dict[str, float]:
    """`2.5` is filed under "", `nvidia.com/gpu=2.5` under its name. Raises Failed for what is no price."""
    found: dict[str, float] = {}
    for text in given:
        resource, equals, number = text.rpartition("=")
        price = _number(number)
        if price is None or (equals and not resource):
            raise CommandError(
                f"--price {text}: give a number, or RESOURCE=NUMBER such as nvidia.com/gpu=2.50", ExitCode.USAGE
            )
        if resource in found:
            raise CommandError(
                f"--price {text}: {resource or 'the price of all devices'} is given twice", ExitCode.USAGE
            )
        found[resource] = price
    return found


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) and value >= 0 else None
