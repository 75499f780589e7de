"""`timeline`: who was created, scheduled, pulled, started, released and running when, and what the wait has cost."""

import asyncio
import shutil
import time
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Annotated, Final

import typer

from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.events import CoreEvent
from jobset_gate.barrier.source import Source
from jobset_gate.cli.cluster import Invocation
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch.gangs import GATED_PODS, FetchedGang, fetch_gang
from jobset_gate.cli.fetch.leader_worker_set import fetch_groups
from jobset_gate.cli.fetch.names import find, resolve_gang
from jobset_gate.cli.fetch.resolver import Resolver, open_resolver
from jobset_gate.cli.fetch.source import PAGE, NamespaceReader, forbidden_text
from jobset_gate.cli.options import ControllerConfig, Owner, ResourceKind, new_app, option, parse_resource
from jobset_gate.cli.printers import output as out
from jobset_gate.cli.printers.documents import document_text
from jobset_gate.cli.printers.timeline import timeline_bars, timeline_json, timeline_table
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import EVENTS, PODS
from jobset_gate.objects import terminal_text
from jobset_gate.runtime.paging import ListScope, list_objects
from jobset_gate.timeline import decode
from jobset_gate.timeline.gang import gang_timeline, pod_group_timeline
from jobset_gate.timeline.model import Timeline
from jobset_gate.timeline.pulls import PULLED, read_pulls
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


app = new_app()


@app.command("timeline", epilog="Example: {program} timeline train -o svg --output-file train.svg")
async def timeline(
    *,
    name: Annotated[
        str,
        typer.Argument(
            metavar="[jobset/|job/|lws/|startgroup/|trainjob/|pod/|podgroup/]NAME",
            help="A gang: a JobSet, Job, LeaderWorkerSet or start group; with a prefix that of a pod, or a pod group. "
            "gang/NAME is one, too.",
            show_default=False,
        ),
    ],
    owner: Owner = "",
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
    invocation: Invocation,
) -> None:
    """Show the present attempt of a gang, pod by pod: created, scheduled, barrier's image pulled, barrier
    started, released, running; the start skew; and how long devices stood idle at the gate. Of a pod group the
    present generation: created, opened, bound, running; when it was gathered; the skew of its placement; and how
    long devices had pods that could not work yet.

    Asks the API server only, so it works without a controller. The times of pulls come from Events, which live an hour;
    what the cluster no longer knows is shown as such, never guessed.
    """
    argument = parse_resource(name, owner)
    prices = parse_prices(price or ())
    async with open_resolver(invocation, config) as resolver:
        argument = await resolve_gang(resolver, argument)
        if argument.kind is ResourceKind.LWS:
            found = await fetch_lws_timelines(resolver, argument.name)
        else:
            gang, pod_groups = partial(fetch_gang_timeline, resolver), partial(fetch_pod_group_timelines, resolver)
            found = await find(argument, gang, pod_groups)
        controller = None if all(map(_is_decided, found)) else await resolver.controller()
    if len(found) > 1 and output is TimelineFormat.SVG:
        raise CommandError(f"{name}: {len(found)} groups of that name: a picture is of one")
    text = _text([(it, idle_devices(it, prices)) for it in found], output, every=every)
    if output_file is None:
        out.document(text)
    else:
        await asyncio.to_thread(output_file.write_bytes, text.encode())
    for line in resolver.permissions.missing:
        out.err(f"warning: {line}")
    if controller is not None and not controller.leads:
        out.err(f"warning: {controller.message}")


def _is_decided(it: Timeline) -> bool:
    """Then it is of no interest whether a controller runs."""
    if it.placing is not None:
        return it.placing.satisfied is not None
    return bool(it.verdict) or it.finished


def _text(found: Sequence[tuple[Timeline, Sequence[IdleDevices]]], form: TimelineFormat, *, every: bool) -> str:
    if form in (TimelineFormat.JSON, TimelineFormat.YAML):
        return document_text(form, *(timeline_json(it, idle) for it, idle in found))
    if form is TimelineFormat.SVG:
        return "\n".join(timeline_svg(it, idle) for it, idle in found)
    if form is TimelineFormat.BARS:
        columns = shutil.get_terminal_size().columns
        texts = [timeline_bars(it, idle, columns) for it, idle in found]
    else:
        wide = form is TimelineFormat.WIDE
        texts = [timeline_table(it, idle, wide=wide, every=every) for it, idle in found]
    return terminal_text.lines("\n".join(texts))


def parse_prices(given: Sequence[str]) -> dict[str, float]:
    """`2.5` is filed under "", `nvidia.com/gpu=2.5` under its name. Raises CommandError for what is no price."""
    found: dict[str, float] = {}
    for text in given:
        resource, equals, number = text.rpartition("=")
        try:
            price = float(number)
        except ValueError:
            price = -1.0
        if not isfinite(price) or price < 0 or (equals and not resource):
            raise CommandError(
                f"--price {text}: give a number, or RESOURCE=NUMBER such as nvidia.com/gpu=2.50", ExitCode.USAGE
            )
        if resource in found:
            raise CommandError(
                f"--price {text}: {resource or 'the price of all devices'} is given twice", ExitCode.USAGE
            )
        found[resource] = price
    return found


# --- What it is made of ----------------------------------------------------------------------------------------------

MAX_EVENTS: Final = 50_000
"""Events that are read: those of other pods in the namespace are among them, and cannot be left out."""


async def fetch_gang_timeline(resolver: Resolver, source: Source, name: str) -> list[Timeline]:
    """A list of one. Raises CommandError if there is no such gang, or its pods may not be read."""
    pods = await _timed_pods(resolver, source.pods_selector(name))
    found = await fetch_gang(resolver, source, name, pods=source.gates_pods, known={PODS: pods})
    if found is None:
        what = names.CONFIG_FIELD if source.has_config_field else f"annotation {names.CONFIG}"
        raise CommandError(f"{source.kind} {resolver.namespace}/{name} asks for no gate: it has no {what}")
    return await _gang_timelines(resolver, [found], pods)


async def fetch_lws_timelines(resolver: Resolver, name: str) -> list[Timeline]:
    """Those of all groups of a LeaderWorkerSet. Raises CommandError if it is not there, or its pods may not be read."""
    pods = await _timed_pods(resolver, f"{GATED_PODS},{names.LWS_NAME}={name}")
    groups = await fetch_groups(resolver, name, known={PODS: pods})
    return await _gang_timelines(resolver, groups.gangs.values(), pods)


async def _gang_timelines(
    resolver: Resolver, gangs: Iterable[FetchedGang], pods: Sequence[wire.MemberPod]
) -> list[Timeline]:
    notes, now = resolver.permissions.missing, time.time()
    pulls = await fetch_image_pulls(resolver, {pod.metadata.uid for pod in pods})
    ways = [decode.decode_pod(pod, pulls.get(pod.metadata.uid)) for pod in pods]
    return [
        gang_timeline(it.workload, it.config_map, decode.pods_of_gang(it, ways), now, notes)
        for it in (found.gang for found in gangs)
    ]


async def fetch_pod_group_timelines(resolver: Resolver, name: str) -> list[Timeline]:
    """Those of all groups of that name. Raises ObjectNotFound if there is none."""
    found = []
    for it in await resolver.named_statuses(name):
        pods = map(decode.decode_pod, await _timed_pods(resolver, f"{names.POD_GROUP_LABEL}={it.label}"))
        found.append(pod_group_timeline(it, pods, time.time(), resolver.permissions.missing))
    return found


async def _timed_pods(reader: NamespaceReader, labels: str) -> list[wire.MemberPod]:
    scope, add = ListScope(PODS, reader.namespace, labels), reader.permissions.add_sentence
    try:
        return [it async for it in list_objects(reader.client, scope, wire.MemberPod, PAGE, on_unreadable=add)]
    except Forbidden as no:
        raise CommandError(f"{forbidden_text('list', PODS, reader.namespace)}: {no.message}") from no


async def fetch_image_pulls(reader: NamespaceReader, pods: Collection[str]) -> dict[str, dict[str, float]]:
    """By UID of a pod, then by container. What may not be read is named among the permissions."""
    found: dict[str, dict[str, float]] = {}
    scope, add = ListScope(EVENTS, reader.namespace, "", PULLED), reader.permissions.add_sentence
    events = list_objects(reader.client, scope, CoreEvent, PAGE, on_unreadable=add)
    try:
        if await read_pulls(events, pods, found, MAX_EVENTS):
            add(f"only the first {MAX_EVENTS} Events were read: more pulls may be known than are shown")
    except Forbidden:
        reader.permissions.add_missing("list", EVENTS, reader.namespace, "when images were pulled is not known")
    return found
