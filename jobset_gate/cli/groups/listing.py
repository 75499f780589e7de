"""What `get groups` does: reads the cluster, prints the groups, and says what it could not see."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import typer

from jobset_gate.cli import settings_file
from jobset_gate.cli.caller import Caller
from jobset_gate.cli.documents.writing import to_json, to_yaml
from jobset_gate.cli.exits import Exit, Failed
from jobset_gate.cli.groups import documents, keepers, reading, telling
from jobset_gate.cli.groups.table import name, table
from jobset_gate.cli.options import Output
from jobset_gate.groups.report import Report
from jobset_gate.kube import access
from jobset_gate.kube.client import Client


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks for."""

    names: Sequence[str] = ()
    namespace: str | None = None
    all_namespaces: bool = False
    output: Output = Output.TABLE
    headers: bool = True
    watch: bool = False
    config: Path | None = None
    program: str = "kubectl jobset-gate"
    caller: Caller = field(default_factory=Caller)


async def run(wanted: Wanted, *, kubeconfig: str | None, context: str | None) -> Exit:
    """Prints the groups; what a person has to know besides goes to standard error."""
    if wanted.all_namespaces and wanted.names:
        raise Failed("names are those of one namespace: leave out --all-namespaces", Exit.USAGE)
    wanted = replace(wanted, caller=Caller(wanted.program, kubeconfig, context, wanted.namespace))
    settings = settings_file.read(wanted.config).admission.groups
    reached = await access.discover(kubeconfig, context)
    namespace = None if wanted.all_namespaces else wanted.namespace or reached.namespace
    async with Client(reached) as client:
        keeper = await keepers.controller(client, reached.namespace)
        if wanted.watch:
            from jobset_gate.cli.groups import watching  # noqa: PLC0415 - only for those who watch

            return await watching.run(client, namespace, wanted, keeper)
        read = await reading.read(client, settings, namespace)
        made_by = await telling.makers(client, read)
    now = time.time()
    told = telling.reports(read, settings, made_by, now, controlled=bool(keeper.leads))
    found = [it for it in told if not wanted.names or it.key.name in wanted.names]
    _print(found, wanted, now, namespaces=namespace is None)
    warn(read, keeper, wanted.caller)
    return _exit(found, wanted, read, namespace)


def warn(read: reading.Reading, keeper: keepers.Keeper, caller: Caller) -> None:
    """What was not seen, that nobody opens groups, and what belongs to none."""
    for line in read.missing:
        _say(f"warning: {line}")
    if not keeper.leads:
        _say(f"warning: {keeper.told}")
    strays = len(read.index.strays())
    if strays:
        free = caller.line("jobset-gate groups ungate --all")
        _say(f"warning: {strays} pods carry our label and name no group any more; `{free}` frees them")


def absent(found: Sequence[Report], wanted: Wanted, namespace: str | None) -> bool:
    """Whether one of those that were named is not there; it is said which."""
    missing = [it for it in dict.fromkeys(wanted.names) if it not in {each.key.name for each in found}]
    for each in missing:
        _say(f"error: group {each} not found{_where(namespace)}")
    return bool(missing)


def _print(found: Sequence[Report], wanted: Wanted, now: float, *, namespaces: bool) -> None:
    match wanted.output:
        case Output.JSON:
            text = to_json([documents.listed(found)])
        case Output.YAML:
            text = to_yaml([documents.listed(found)])
        case Output.NAME:
            text = "".join(f"group/{name(it)}\n" for it in found)
        case _:
            wide = wanted.output is Output.WIDE
            text = table(found, now, wide=wide, namespaces=namespaces, headers=wanted.headers)
    typer.echo(text.encode(), nl=False)


def _exit(found: Sequence[Report], wanted: Wanted, read: reading.Reading, namespace: str | None) -> Exit:
    if absent(found, wanted, namespace) or not read.members:
        return Exit.ERROR
    if not found:
        _say(f"No groups found{_where(namespace)}.")
    return Exit.OK


def _where(namespace: str | None) -> str:
    return f" in namespace {namespace}" if namespace else ""


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
