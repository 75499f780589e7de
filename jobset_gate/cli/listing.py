"""What `get` shows: where its objects come from, and how each of them is printed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jobset_gate.cli import settings_file
from jobset_gate.cli.fetch.jobsets import JOBSET_KIND, FetchedJobSet, GangSource
from jobset_gate.cli.fetch.permissions import Permissions
from jobset_gate.cli.fetch.pod_groups import PodGroupSource
from jobset_gate.cli.fetch.source import ResourceSource
from jobset_gate.cli.invocation import Invocation
from jobset_gate.cli.options import OutputFormat
from jobset_gate.cli.printers import tables
from jobset_gate.cli.printers.documents import explanation_json, pod_group_json
from jobset_gate.cli.printers.items import ItemFormat, PrintedItem
from jobset_gate.explain.gang import explain_gang
from jobset_gate.explain.podgroup import explain_pod_group

if TYPE_CHECKING:
    from jobset_gate.explain.model import ControllerStatus, Explanation
    from jobset_gate.kube.client import Client
    from jobset_gate.podgroups.status import GroupStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class GetOptions:
    """What the command line asks for."""

    names: Sequence[str] = ()
    all_namespaces: bool = False
    output: OutputFormat = OutputFormat.TABLE
    headers: bool = True
    watch: bool = False
    config: Path | None = None
    invocation: Invocation = field(default_factory=Invocation)

    def selects(self, name: str) -> bool:
        """Whether that is one of the names, if any are given."""
        return not self.names or name in self.names


@dataclass(frozen=True, slots=True)
class ListTarget:
    """Where to look: `namespace` None is all of them."""

    client: Client
    namespace: str | None
    controller: ControllerStatus
    permissions: Permissions = field(default_factory=Permissions)


class Listing:
    """One table. `kinds`: of gangs, as `Permissions.hidden_kinds` names them; without all of them there is nothing."""

    kinds: frozenset[str]
    singular: str
    plural: str
    sources: Sequence[ResourceSource]
    """They share one event of changes."""
    form: ItemFormat

    def __init__(self, options: GetOptions, target: ListTarget) -> None:
        self.options, self.target, self.permissions = options, target, target.permissions
        self.wide = options.output is OutputFormat.WIDE

    async def items(self) -> list[PrintedItem]:
        """Everything that was read and is selected, as it is printed."""
        raise NotImplementedError

    def warnings(self) -> Iterator[str]:
        """What the user has to know besides: missing rights, and that no controller runs."""
        yield from self.permissions.missing
        if not self.target.controller.leads:
            yield self.target.controller.message

    def _pod_group_source(self, changed: asyncio.Event) -> PodGroupSource:
        its, settings = self.target, settings_file.read(self.options.config).admission.groups
        controlled = bool(its.controller.leads)
        return PodGroupSource(
            its.client, its.namespace, its.permissions, settings, controlled=controlled, changed=changed
        )


class GangListing(Listing):
    """Gated JobSets, and beside them pod groups in the same words."""

    def __init__(self, options: GetOptions, target: ListTarget, *, groups: bool) -> None:
        super().__init__(options, target)
        changed = asyncio.Event()
        self._jobsets = GangSource(
            target.client, target.namespace, target.permissions, required=not groups, changed=changed
        )
        self._groups = self._pod_group_source(changed) if groups else None
        self.sources = [self._jobsets, self._groups] if self._groups else [self._jobsets]
        self.kinds = frozenset({"JobSets", "pod groups"} if groups else {"JobSets"})
        self.singular, self.plural = ("gang", "gangs") if groups else ("JobSet with a gate", "JobSets with a gate")
        titles = tables.gang_titles(namespaces=options.all_namespaces, kinds=groups, wide=self.wide)
        self.form = ItemFormat(options.output, titles, "GangList", "STATE", "state", options.headers)

    async def items(self) -> list[PrintedItem]:
        found = [self._jobset(it) for it in self._jobsets.jobsets() if self.options.selects(it.name)]
        statuses = await self._groups.statuses() if self._groups else []
        found += [self._pod_group(it) for it in statuses if self.options.selects(tables.group_name(it))]
        return found

    def _jobset(self, it: FetchedJobSet) -> PrintedItem:
        explanation = explain_gang(
            it.gang,
            time.time(),
            controller=self.target.controller,
            policy=it.policies,
            unknown=self.permissions.missing,
            pods_forbidden=it.pods_forbidden,
        )
        return self._item(explanation, it.gang.jobset.created, JOBSET_KIND)

    def _pod_group(self, status: GroupStatus) -> PrintedItem:
        unknown = self.permissions.missing
        explanation = explain_pod_group(status, time.time(), controller=self.target.controller, unknown=unknown)
        return self._item(explanation, status.created, "group", str(status.key.design))

    def _item(self, explanation: Explanation, created: float, kind: str, design: str = "") -> PrintedItem:
        it = self.options.invocation.rewrite_explanation(explanation)
        cells = tables.gang_cells(it, created, wide=self.wide)
        shown = [cells[title] for title in self.form.titles]
        key = (it.kind, it.namespace, it.name, design)  # two designs may have groups of one name
        return PrintedItem(key, shown, lambda: explanation_json(it), f"{kind}/{it.name}")


class PodGroupListing(Listing):
    """Pod groups with their phase and reason."""

    kinds = frozenset({"pod groups"})
    singular, plural = "group", "groups"

    def __init__(self, options: GetOptions, target: ListTarget) -> None:
        super().__init__(options, target)
        self._groups = self._pod_group_source(asyncio.Event())
        self.sources = [self._groups]
        titles = tables.pod_group_titles(namespaces=target.namespace is None, wide=self.wide)
        self.form = ItemFormat(options.output, titles, "GroupList", "PHASE", "phase", options.headers)

    async def items(self) -> list[PrintedItem]:
        found = await self._groups.statuses()
        return [self._item(it) for it in found if self.options.selects(it.key.name)]

    def warnings(self) -> Iterator[str]:
        yield from super().warnings()
        if strays := self._groups.unassigned_pods:
            free = self.options.invocation.command("jobset-gate groups ungate --all")
            yield f"{strays} pods carry our label and name no group any more; `{free}` frees them"

    def _item(self, status: GroupStatus) -> PrintedItem:
        cells = tables.pod_group_cells(status, time.time(), wide=self.wide)
        key = (status.key.namespace, status.key.name, str(status.key.design))
        name = f"group/{tables.group_name(status)}"
        return PrintedItem(key, [cells[it] for it in self.form.titles], lambda: pod_group_json(status), name)
