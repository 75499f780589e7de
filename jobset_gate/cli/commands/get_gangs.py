"""What `get jobsets` and `get gangs` do: read the cluster, print one line for each, say what could not be seen."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from jobset_gate.cli import settings_file
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch import jobset as single
from jobset_gate.cli.fetch import jobset_controller, jobsets
from jobset_gate.cli.fetch.join import FetchedJobSet
from jobset_gate.cli.fetch.permissions import Permissions
from jobset_gate.cli.get_options import GetOptions, namespace_suffix
from jobset_gate.cli.manifests.writer import to_json, to_yaml
from jobset_gate.cli.options import OutputFormat
from jobset_gate.cli.printers import gang_table, output
from jobset_gate.cli.printers.explanation_json import explanation_json
from jobset_gate.cli.printers.gang_table import GangColumns, GangItem
from jobset_gate.explain.gang import explain_gang
from jobset_gate.explain.model import ControllerStatus
from jobset_gate.explain.podgroup import explain_pod_group
from jobset_gate.kube import access
from jobset_gate.kube.client import Client

KINDS = 2
"""JobSets and pod groups: who can see neither has been shown nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangGetOptions(GetOptions):
    """JobSets, and pod groups beside them."""

    groups: bool = False
    rights: Permissions = field(default_factory=Permissions)


async def run(wanted: GangGetOptions, *, kubeconfig: str | None, context: str | None) -> ExitCode:
    """What a person has to know besides goes to standard error."""
    wanted.check()
    wanted = replace(wanted, caller=wanted.make_invocation(kubeconfig, context))
    reached = await access.load_access(kubeconfig, context)
    namespace = wanted.namespace_filter(reached.namespace)
    async with Client(reached) as client:
        controller = await jobset_controller.jobset_controller_status(client, reached.namespace)
        if wanted.watch:
            return await _watch(client, namespace, wanted, controller)
        found = await _found(client, namespace, wanted, controller)
    _print(found, wanted)
    say(wanted, controller)
    return _exit(found, wanted, namespace)


async def _found(
    client: Client, namespace: str | None, wanted: GangGetOptions, controller: ControllerStatus
) -> list[GangItem]:
    """JobSets first, each kind by namespace and name."""
    sights = await _sights(client, namespace, wanted)
    found = [gang for gang in (jobset(it, controller, wanted) for it in sights) if gang is not None]
    if wanted.groups:
        # Imported late: whoever asks about JobSets need not wait for it.
        from jobset_gate.cli.fetch.pod_group_reports import fetch_pod_group_reports  # noqa: PLC0415

        settings = settings_file.read(wanted.config).admission.groups
        for report in await fetch_pod_group_reports(client, namespace, wanted.rights, settings, controller):
            told = explain_pod_group(report, time.time(), controller=controller, unknown=wanted.rights.missing)
            found.append(GangItem(wanted.caller.rewrite_explanation(told), report.created, str(report.key.design)))
    return [it for it in found if wanted.selects(it.explanation.name)]


async def _sights(client: Client, namespace: str | None, wanted: GangGetOptions) -> list[FetchedJobSet]:
    """Where groups are asked for, too, they are shown without JobSets if need be."""
    try:
        return await jobsets.fetch_jobsets(client, namespace, wanted.rights)
    except CommandError as without:
        if not wanted.groups:
            raise
        wanted.rights.missing.append(str(without))
        wanted.rights.hidden_kinds.add("JobSets")
        return []


def jobset(sight: FetchedJobSet, controller: ControllerStatus, wanted: GangGetOptions) -> GangItem | None:
    """None without a gate."""
    if sight.seen is None:
        return None
    told = explain_gang(
        sight.seen,
        time.time(),
        controller=controller,
        policy=sight.policy,
        unknown=wanted.rights.missing,
        pods_forbidden=sight.blind,
    )
    return GangItem(wanted.caller.rewrite_explanation(told), sight.seen.jobset.created)


def look(wanted: GangGetOptions) -> GangColumns:
    """The columns that are asked for."""
    return GangColumns(wanted.all_namespaces, wanted.groups, wanted.output is OutputFormat.WIDE, wanted.headers)


def say(wanted: GangGetOptions, controller: ControllerStatus) -> None:
    """What was not seen, and that nobody decides."""
    lines = list(wanted.rights.missing) + ([] if controller.leads else [controller.told])
    for line in lines:
        output.err(f"warning: {line}")


def _print(found: Sequence[GangItem], wanted: GangGetOptions) -> None:
    match wanted.output:
        case OutputFormat.JSON | OutputFormat.YAML:
            written = to_json if wanted.output is OutputFormat.JSON else to_yaml
            output.document(
                written([{"kind": "GangList", "items": [explanation_json(it.explanation) for it in found]}])
            )
        case OutputFormat.NAME:
            output.out("".join(name(it) + "\n" for it in found))
        case _:
            output.out(gang_table.table(found, look(wanted)))


def name(gang: GangItem) -> str:
    """As the other commands take it."""
    return f"{single.JOBSET_KIND if gang.explanation.kind == 'JobSet' else 'group'}/{gang.explanation.name}"


def absent(found: Sequence[GangItem], wanted: GangGetOptions, namespace: str | None) -> bool:
    """Whether one of those that were named is not there; it is said which."""
    kind = "gang" if wanted.groups else "JobSet with a gate"
    return wanted.report_not_found(kind, {it.explanation.name for it in found}, namespace)


def _exit(found: Sequence[GangItem], wanted: GangGetOptions, namespace: str | None) -> ExitCode:
    if absent(found, wanted, namespace):
        return ExitCode.ERROR
    if len(wanted.rights.hidden_kinds) == KINDS:
        return ExitCode.ERROR
    if not found:
        but = f"; {' and '.join(wanted.rights.hidden_kinds)} cannot be seen" if wanted.rights.hidden_kinds else ""
        what = "gangs" if wanted.groups else "JobSets with a gate"
        output.err(f"No {what} found{namespace_suffix(namespace)}{but}.")
    return ExitCode.OK


async def _watch(
    client: Client, namespace: str | None, wanted: GangGetOptions, controller: ControllerStatus
) -> ExitCode:
    from jobset_gate.cli.watch import gangs as gang_watching  # noqa: PLC0415 - only for those who watch

    return await gang_watching.run(client, namespace, wanted, controller)
