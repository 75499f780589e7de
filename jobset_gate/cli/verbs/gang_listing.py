"""What `get jobsets` and `get gangs` do: read the cluster, print one line for each, say what could not be seen."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from jobset_gate.cli import settings_file
from jobset_gate.cli.documents.writing import to_json, to_yaml
from jobset_gate.cli.exits import Exit, Failed
from jobset_gate.cli.looking import gangs, keeper
from jobset_gate.cli.looking.rights import Rights
from jobset_gate.cli.looking.sights import Sight
from jobset_gate.cli.options import Output
from jobset_gate.cli.telling import output
from jobset_gate.cli.telling.documents import document
from jobset_gate.cli.verbs import gang_table, single
from jobset_gate.cli.verbs.asked import Asked, where
from jobset_gate.cli.verbs.gang_table import Gang, Look
from jobset_gate.explain import explain
from jobset_gate.explain_group import explain_group
from jobset_gate.explained import Controller
from jobset_gate.kube import access
from jobset_gate.kube.client import Client

KINDS = 2
"""JobSets and pod groups: who can see neither has been shown nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted(Asked):
    """JobSets, and pod groups beside them."""

    groups: bool = False
    rights: Rights = field(default_factory=Rights)


async def run(wanted: Wanted, *, kubeconfig: str | None, context: str | None) -> Exit:
    """What a person has to know besides goes to standard error."""
    wanted.check()
    wanted = replace(wanted, caller=wanted.called(kubeconfig, context))
    reached = await access.discover(kubeconfig, context)
    namespace = wanted.within(reached.namespace)
    async with Client(reached) as client:
        controller = await keeper.controller(client, reached.namespace)
        if wanted.watch:
            return await _watch(client, namespace, wanted, controller)
        found = await _found(client, namespace, wanted, controller)
    _print(found, wanted)
    say(wanted, controller)
    return _exit(found, wanted, namespace)


async def _found(client: Client, namespace: str | None, wanted: Wanted, controller: Controller) -> list[Gang]:
    """JobSets first, each kind by namespace and name."""
    sights = await _sights(client, namespace, wanted)
    found = [gang for gang in (jobset(it, controller, wanted) for it in sights) if gang is not None]
    if wanted.groups:
        # Imported late: whoever asks about JobSets need not wait for it.
        from jobset_gate.cli.looking.groups import groups  # noqa: PLC0415

        settings = settings_file.read(wanted.config).admission.groups
        for report in await groups(client, namespace, wanted.rights, settings, controller):
            told = explain_group(report, time.time(), controller=controller, unknown=wanted.rights.missing)
            found.append(Gang(wanted.caller.explanation(told), report.created, str(report.key.design)))
    return [it for it in found if wanted.wants(it.told.name)]


async def _sights(client: Client, namespace: str | None, wanted: Wanted) -> list[Sight]:
    """Where groups are asked for, too, they are shown without JobSets if need be."""
    try:
        return await gangs.gangs(client, namespace, wanted.rights)
    except Failed as without:
        if not wanted.groups:
            raise
        wanted.rights.missing.append(str(without))
        wanted.rights.hidden.add("JobSets")
        return []


def jobset(sight: Sight, controller: Controller, wanted: Wanted) -> Gang | None:
    """None without a gate."""
    if sight.seen is None:
        return None
    told = explain(
        sight.seen,
        time.time(),
        controller=controller,
        policy=sight.policy,
        unknown=wanted.rights.missing,
        blind=sight.blind,
    )
    return Gang(wanted.caller.explanation(told), sight.seen.jobset.created)


def look(wanted: Wanted) -> Look:
    """The columns that are asked for."""
    return Look(wanted.all_namespaces, wanted.groups, wanted.output is Output.WIDE, wanted.headers)


def say(wanted: Wanted, controller: Controller) -> None:
    """What was not seen, and that nobody decides."""
    lines = list(wanted.rights.missing) + ([] if controller.leads else [controller.told])
    for line in lines:
        output.err(f"warning: {line}")


def _print(found: Sequence[Gang], wanted: Wanted) -> None:
    match wanted.output:
        case Output.JSON | Output.YAML:
            written = to_json if wanted.output is Output.JSON else to_yaml
            output.document(written([{"kind": "GangList", "items": [document(it.told) for it in found]}]))
        case Output.NAME:
            output.out("".join(name(it) + "\n" for it in found))
        case _:
            output.out(gang_table.table(found, look(wanted)))


def name(gang: Gang) -> str:
    """As the other commands take it."""
    return f"{single.KIND if gang.told.kind == 'JobSet' else 'group'}/{gang.told.name}"


def absent(found: Sequence[Gang], wanted: Wanted, namespace: str | None) -> bool:
    """Whether one of those that were named is not there; it is said which."""
    kind = "gang" if wanted.groups else "JobSet with a gate"
    return wanted.absent(kind, {it.told.name for it in found}, namespace)


def _exit(found: Sequence[Gang], wanted: Wanted, namespace: str | None) -> Exit:
    if absent(found, wanted, namespace):
        return Exit.ERROR
    if len(wanted.rights.hidden) == KINDS:
        return Exit.ERROR
    if not found:
        but = f"; {' and '.join(wanted.rights.hidden)} cannot be seen" if wanted.rights.hidden else ""
        what = "gangs" if wanted.groups else "JobSets with a gate"
        output.err(f"No {what} found{where(namespace)}{but}.")
    return Exit.OK


async def _watch(client: Client, namespace: str | None, wanted: Wanted, controller: Controller) -> Exit:
    from jobset_gate.cli.verbs import gang_watching  # noqa: PLC0415 - only for those who watch

    return await gang_watching.run(client, namespace, wanted, controller)
