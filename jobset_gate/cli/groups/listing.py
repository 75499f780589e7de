"""What `get groups` does: reads the cluster, prints the groups, and says what it could not see."""

import time
from collections.abc import Sequence
from dataclasses import replace

from jobset_gate.cli import settings_file
from jobset_gate.cli.caller import Caller
from jobset_gate.cli.documents.writing import to_json, to_yaml
from jobset_gate.cli.exits import Exit
from jobset_gate.cli.groups import documents, keepers, reading, telling
from jobset_gate.cli.groups.table import name, table
from jobset_gate.cli.options import Output
from jobset_gate.cli.telling import output
from jobset_gate.cli.verbs.asked import Asked, where
from jobset_gate.groups.report import Report
from jobset_gate.kube import access
from jobset_gate.kube.client import Client


async def run(wanted: Asked, *, kubeconfig: str | None, context: str | None) -> Exit:
    """Prints the groups; what a person has to know besides goes to standard error."""
    wanted.check()
    wanted = replace(wanted, caller=wanted.called(kubeconfig, context))
    settings = settings_file.read(wanted.config).admission.groups
    reached = await access.discover(kubeconfig, context)
    namespace = wanted.within(reached.namespace)
    async with Client(reached) as client:
        keeper = await keepers.controller(client, reached.namespace)
        if wanted.watch:
            from jobset_gate.cli.groups import watching  # noqa: PLC0415 - only for those who watch

            return await watching.run(client, namespace, wanted, keeper)
        read = await reading.read(client, settings, namespace)
        made_by = await telling.makers(client, read)
    now = time.time()
    told = telling.reports(read, settings, made_by, now, controlled=bool(keeper.leads))
    found = [it for it in told if wanted.wants(it.key.name)]
    _print(found, wanted, now, namespaces=namespace is None)
    warn(read, keeper, wanted.caller)
    return _exit(found, wanted, read, namespace)


def warn(read: reading.Reading, keeper: keepers.Keeper, caller: Caller) -> None:
    """What was not seen, that nobody opens groups, and what belongs to none."""
    for line in read.missing:
        output.err(f"warning: {line}")
    if not keeper.leads:
        output.err(f"warning: {keeper.told}")
    strays = len(read.index.strays())
    if strays:
        free = caller.line("jobset-gate groups ungate --all")
        output.err(f"warning: {strays} pods carry our label and name no group any more; `{free}` frees them")


def absent(found: Sequence[Report], wanted: Asked, namespace: str | None) -> bool:
    """Whether one of those that were named is not there; it is said which."""
    return wanted.absent("group", {it.key.name for it in found}, namespace)


def _print(found: Sequence[Report], wanted: Asked, now: float, *, namespaces: bool) -> None:
    match wanted.output:
        case Output.JSON:
            output.document(to_json([documents.listed(found)]))
        case Output.YAML:
            output.document(to_yaml([documents.listed(found)]))
        case Output.NAME:
            output.out("".join(f"group/{name(it)}\n" for it in found))
        case _:
            wide = wanted.output is Output.WIDE
            output.out(table(found, now, wide=wide, namespaces=namespaces, headers=wanted.headers))


def _exit(found: Sequence[Report], wanted: Asked, read: reading.Reading, namespace: str | None) -> Exit:
    if absent(found, wanted, namespace) or not read.members:
        return Exit.ERROR
    if not found:
        output.err(f"No groups found{where(namespace)}.")
    return Exit.OK
