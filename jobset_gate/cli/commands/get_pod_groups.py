"""What `get groups` does: reads the cluster, prints the groups, and says what it could not see."""

import time
from collections.abc import Sequence
from dataclasses import replace

from jobset_gate.cli import settings_file
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.fetch import controller_status, pod_group_rules, pod_groups
from jobset_gate.cli.get_options import GetOptions, namespace_suffix
from jobset_gate.cli.invocation import Invocation
from jobset_gate.cli.manifests.writer import to_json, to_yaml
from jobset_gate.cli.options import OutputFormat
from jobset_gate.cli.printers import output, pod_group_json
from jobset_gate.cli.printers.pod_group_table import name, table
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.podgroups.status import GroupStatus


async def run(wanted: GetOptions, *, kubeconfig: str | None, context: str | None) -> ExitCode:
    """Prints the groups; what a person has to know besides goes to standard error."""
    wanted.check()
    wanted = replace(wanted, caller=wanted.make_invocation(kubeconfig, context))
    settings = settings_file.read(wanted.config).admission.groups
    reached = await access.load_access(kubeconfig, context)
    namespace = wanted.namespace_filter(reached.namespace)
    async with Client(reached) as client:
        keeper = await controller_status.controller_state(client, reached.namespace)
        if wanted.watch:
            from jobset_gate.cli.watch import pod_groups as watch_pod_groups  # noqa: PLC0415 - only for those who watch

            return await watch_pod_groups.run(client, namespace, wanted, keeper)
        read = await pod_groups.fetch_pod_groups(client, settings, namespace)
        made_by = await pod_group_rules.fetch_owner_capacity(client, read)
    now = time.time()
    told = pod_group_rules.pod_group_reports(read, settings, made_by, now, controlled=bool(keeper.leads))
    found = [it for it in told if wanted.selects(it.key.name)]
    _print(found, wanted, now, namespaces=namespace is None)
    warn(read, keeper, wanted.caller)
    return _exit(found, wanted, read, namespace)


def warn(read: pod_groups.FetchedPodGroups, keeper: controller_status.ControllerState, caller: Invocation) -> None:
    """What was not seen, that nobody opens groups, and what belongs to none."""
    for line in read.missing:
        output.err(f"warning: {line}")
    if not keeper.leads:
        output.err(f"warning: {keeper.message}")
    strays = len(read.cache.unassigned_pods())
    if strays:
        free = caller.command("jobset-gate groups ungate --all")
        output.err(f"warning: {strays} pods carry our label and name no group any more; `{free}` frees them")


def absent(found: Sequence[GroupStatus], wanted: GetOptions, namespace: str | None) -> bool:
    """Whether one of those that were named is not there; it is said which."""
    return wanted.report_not_found("group", {it.key.name for it in found}, namespace)


def _print(found: Sequence[GroupStatus], wanted: GetOptions, now: float, *, namespaces: bool) -> None:
    match wanted.output:
        case OutputFormat.JSON:
            output.document(to_json([pod_group_json.pod_groups_json(found)]))
        case OutputFormat.YAML:
            output.document(to_yaml([pod_group_json.pod_groups_json(found)]))
        case OutputFormat.NAME:
            output.out("".join(f"group/{name(it)}\n" for it in found))
        case _:
            wide = wanted.output is OutputFormat.WIDE
            output.out(table(found, now, wide=wide, namespaces=namespaces, headers=wanted.headers))


def _exit(
    found: Sequence[GroupStatus], wanted: GetOptions, read: pod_groups.FetchedPodGroups, namespace: str | None
) -> ExitCode:
    if absent(found, wanted, namespace) or not read.pods_listed:
        return ExitCode.ERROR
    if not found:
        output.err(f"No groups found{namespace_suffix(namespace)}.")
    return ExitCode.OK
