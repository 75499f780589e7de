"""`groups ungate`: removes what pod groups leave behind without a controller: gates, suspended owners, records (G4)."""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import typer

from controllers.podgroups import evictor
from jobset_gate import names as spelled
from jobset_gate.cli import logs
from jobset_gate.cli.cluster import ClusterOptions
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch.controller_status import NO_GROUPS, controller_status, pod_webhooks
from jobset_gate.cli.fetch.source import PAGE
from jobset_gate.cli.options import DryRun, DryRunOption, LogLevel, Yes, new_app
from jobset_gate.cli.options import namespace as place
from jobset_gate.cli.printers import output
from jobset_gate.explain.model import ControllerStatus
from jobset_gate.explain.text import format_pod_count
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Conflict, Forbidden, NotFound, RequestFailed, is_uid_mismatch
from jobset_gate.kube.resources import CONFIGMAPS, POD_GROUPS, PODS
from jobset_gate.objects.unstructured import as_list, as_map, nested
from jobset_gate.podgroups import decode, eviction, wire
from jobset_gate.podgroups.model import Flavor, PodGroupKey, group_label
from jobset_gate.podgroups.snapshot import MemberPod
from jobset_gate.runtime.paging import ListScope, list_objects

CONCURRENCY: Final = 32
"""Pods patched at once."""
PASSES: Final = 3
"""So often the pods are listed: owners that go on create new ones."""
MAX_LINES: Final = 20
UNBOUND: Final = "spec.nodeName="
"""Field selector: a pod with a gate has no node. Our label is not asked for, since users may have removed it."""
_RECORDS: Final = f"{spelled.POD_GROUP_RECORD}={spelled.POD_GROUP_RECORD_VALUE}"
_ANNOTATIONS: Final = (spelled.POD_GROUP_RECORD, spelled.POD_GROUP_STATE)
_EXAMPLE: Final = "Example: {program} groups ungate --all --dry-run=client"

app = new_app()
groups = new_app(no_args_is_help=True, help="Free the pods of groups.", epilog=_EXAMPLE)
app.add_typer(groups, name="groups")


@groups.command("ungate", short_help="Remove our scheduling gates from the pods of groups.", epilog=_EXAMPLE)
async def ungate(
    *,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="The groups to free.", show_default=False)
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All groups, of all namespaces unless --namespace is given.")
    ] = False,
    namespace: Annotated[str | None, place("Where the groups are; otherwise the context's namespace.")] = None,
    yes: Yes = False,
    dry_run: DryRunOption = DryRun.NONE,
    cluster: ClusterOptions,
) -> ExitCode:
    """Let the pods of groups be scheduled one by one, without waiting for the rest of their group.

    For when there is no controller any more. Needs neither it nor the webhook, only the rights to list and patch
    pods. Jobs and JobSets that were suspended to take a group back are resumed. With --all, and if no controller
    runs, what it has written down about groups is removed, too. A gate cannot be put back.
    """
    if everything == bool(names):
        raise CommandError("name groups, or say --all; not both", ExitCode.USAGE)

    logs.configure(level=LogLevel.ERROR)
    async with cluster.connect(connections=CONCURRENCY + 8) as client:
        own = client.access.namespace
        where = namespace or (None if everything else own)
        return await _UngateRun(client, where, tuple(names or ()), yes, dry_run).run(own)


@dataclass(slots=True)
class _UngateRun:
    """One run of the command. `names` empty: all groups, of all namespaces where `namespace` is None."""

    client: Client
    namespace: str | None
    names: tuple[str, ...]
    yes: bool
    dry_run: DryRun
    freed: Counter[str] = field(default_factory=Counter)
    """Pods by their group: those that were freed, or would be."""
    gone: int = 0
    """Pods that were deleted meanwhile, or freed by another client."""
    failures: list[str] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    records: int = 0
    problems: list[str] = field(default_factory=list)

    async def run(self, own_namespace: str) -> ExitCode:
        controller = await controller_status(self.client, own_namespace, without=NO_GROUPS)
        await self._warn(controller)
        held = await self._held_pods()
        self._warn_of_names(held)
        if self.dry_run is DryRun.NONE:
            self._ask(len(held))
        await self._resume_owners()
        if self.dry_run is DryRun.CLIENT:
            self.freed.update(map(_group_of, held))
        elif self.dry_run is DryRun.SERVER:
            await self._remove_gates(held)
        else:
            await self._free(held)
        if not self.names and controller.leads is False:
            for api_group in (None, *sorted(POD_GROUPS)):
                await self._remove_records(api_group)
        return self._print()

    async def _warn(self, controller: ControllerStatus) -> None:
        if controller.leads:
            output.err(f"warning: {controller.message}: it may roll groups back that it has opened")
        if controller.leads is None and not self.names:
            output.err(f"warning: {controller.message}: what it may have written down about groups stays")
        if webhooks := await pod_webhooks(self.client):
            who = f"the webhook configuration {', '.join(webhooks)}"
            output.err(f"warning: {who} is still there: pods that are created from now on are held")

    def _warn_of_names(self, held: list[MemberPod]) -> None:
        """One that is free already is no error; one that is misspelt looks the same."""
        for name in self.names:
            if not any(map(_in_groups((name,), self.namespace), held)):
                output.err(f"warning: no pod of a group {name} is held in namespace {self.namespace}")

    def _ask(self, many: int) -> None:
        if self.yes or not many:
            return
        pods = format_pod_count(many)
        if not sys.stdin.isatty():
            raise CommandError(
                f"{pods} would be freed: say --yes to do that, or --dry-run=client to see which", ExitCode.USAGE
            )
        typer.confirm(f"Free {pods} for good, to start without the rest of the group?", abort=True, err=True)

    # --- Pods --------------------------------------------------------------------------------------------------------

    async def _held_pods(self) -> list[MemberPod]:
        """Those of the groups that our gate holds, by namespace and name."""
        scope, wanted = ListScope(PODS, self.namespace, field_selector=UNBOUND), _in_groups(self.names, self.namespace)
        unbound = list_objects(self.client, scope, wire.GroupPod, PAGE)
        found = [pod async for it in unbound if (pod := decode.decode_member(it)).gated and wanted(pod)]
        return sorted(found, key=lambda it: (it.namespace, it.name))

    async def _free(self, held: list[MemberPod]) -> None:
        tried = set[str]()
        for _ in range(PASSES + 1):
            await self._remove_gates(held)
            tried |= {it.uid for it in held}
            if not (tried or self.owners):
                return
            # Made meanwhile, by owners that go on or on the heels of those that are free now.
            held = [it for it in await self._held_pods() if it.uid not in tried]
            if not held:
                return

    async def _remove_gates(self, held: Sequence[MemberPod]) -> None:
        """Removes our gate from each of them; what goes wrong with one holds up no other."""
        waiting = iter(held)

        async def work() -> None:
            for pod in waiting:
                await self._remove_gate(pod)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(CONCURRENCY, len(held))):
                tasks.create_task(work())

    async def _remove_gate(self, pod: MemberPod) -> None:
        gates = [{"$patch": "delete", "name": spelled.POD_GROUP_GATE}]
        body = {"metadata": {"uid": pod.uid}, "spec": {"schedulingGates": gates}}
        how: dict[str, Any] = {"patch": PatchType.STRATEGIC, "field_manager": spelled.FIELD_MANAGER}
        how["dry_run"] = self.dry_run is DryRun.SERVER
        try:
            await self.client.patch(PODS, pod.name, pod.namespace, body=body, **how)
        except RequestFailed as error:
            if isinstance(error, NotFound | Conflict) or is_uid_mismatch(error):
                self.gone += 1
            else:
                self.failures.append(f"pod {pod.namespace}/{pod.name}: {error}")
        else:
            self.freed[_group_of(pod)] += 1

    # --- Owners and records ------------------------------------------------------------------------------------------

    async def _resume_owners(self) -> None:
        """Lets Jobs and JobSets go on that we have suspended for these groups."""
        try:
            found = await evictor.marked_owners(self.client, self.namespace)
        except Forbidden as refused:
            self.problems.append(f"whether Jobs and JobSets were suspended is not known: {refused}")
            return
        labels = set(map(group_label, _keys(self.names, self.namespace)))
        for root in found:
            if self.names and eviction.parse_mark(root.mark)[0] not in labels:
                continue
            title = f"{root.kind} {root.namespace}/{root.name}"
            try:
                if self.dry_run is not DryRun.NONE or await evictor.resume_owner(self.client, root):
                    self.owners.append(title)
            except ApiError as error:
                self.problems.append(f"{title} is not resumed: {error}")

    async def _remove_records(self, api_group: str | None) -> None:
        """Removes decisions about groups from ConfigMaps (None) or PodGroups: no later controller may use them."""
        resource = POD_GROUPS[api_group] if api_group else CONFIGMAPS
        try:
            listed = await self.client.list(resource, self.namespace, label_selector="" if api_group else _RECORDS)
            for each in as_list(listed.get("items")):
                annotations = as_map(nested(each, "metadata", "annotations"))
                if api_group is None or any(it in annotations for it in _ANNOTATIONS):
                    self.records += 1
                    await self._remove_record(api_group, each)
        except NotFound:
            return  # this kind is not installed
        except ApiError as error:
            kind = f"PodGroups of {api_group}" if api_group else "ConfigMaps"
            self.problems.append(f"records on {kind} stay: {error}")

    async def _remove_record(self, api_group: str | None, each: Any) -> None:
        if self.dry_run is not DryRun.NONE:
            return
        name, namespace, uid = (nested(each, "metadata", key) for key in ("name", "namespace", "uid"))
        try:
            if api_group is None:
                await self.client.delete(CONFIGMAPS, name, namespace, uid=uid)
                return
            body = {"metadata": {"uid": uid, "annotations": dict.fromkeys(_ANNOTATIONS)}}
            await self.client.patch(POD_GROUPS[api_group], name, namespace, body=body, patch=PatchType.MERGE)
        except NotFound:
            return  # another client has removed it

    def _print(self) -> ExitCode:
        would = "" if self.dry_run is DryRun.NONE else "would be "
        for group, many in sorted(self.freed.items())[:MAX_LINES]:
            output.out(f"group {group}: {format_pod_count(many)} {would}freed\n")
        if len(self.freed) > MAX_LINES:
            output.out(f"and {len(self.freed) - MAX_LINES} more groups\n")
        for owner in self.owners:
            output.out(f"{owner}: {would}resumed\n")
        if self.records:
            output.out(f"records of decisions {would}removed: {self.records}\n")
        gone = f", {self.gone} were gone or free already" if self.gone else ""
        output.out(f"{format_pod_count(self.freed.total())} {would}freed{gone}{self.dry_run.suffix}\n")
        for line in self.problems:
            output.err(f"warning: {line}")
        for line in self.failures[:MAX_LINES]:
            output.err(f"error: {line}")
        if len(self.failures) > MAX_LINES:
            output.err(f"error: and {len(self.failures) - MAX_LINES} pods more")
        return ExitCode.ERROR if self.failures else ExitCode.OK


def _keys(names: tuple[str, ...], namespace: str | None) -> list[PodGroupKey]:
    """These groups of a namespace, of any flavor."""
    return [PodGroupKey(flavor=flavor, namespace=namespace or "", name=name) for flavor in Flavor for name in names]


def _in_groups(names: tuple[str, ...], namespace: str | None) -> Callable[[MemberPod], bool]:
    """Whether a pod is in one of these groups; without names in any."""
    keys = _keys(names, namespace)
    labels = set(map(group_label, keys))

    def wanted(pod: MemberPod) -> bool:
        if pod.group_label:
            return pod.group_label in labels
        return pod.membership is not None and pod.membership.key in keys

    return wanted if names else lambda _: True


def _group_of(pod: MemberPod) -> str:
    """The group it is held for, for people."""
    if pod.membership is None or (pod.group_label and group_label(pod.membership.key) != pod.group_label):
        return f"{pod.namespace}/<of label {pod.group_label[:8]}>"
    return f"{pod.namespace}/{pod.membership.key.name or '<none>'} ({pod.membership.key.flavor})"
