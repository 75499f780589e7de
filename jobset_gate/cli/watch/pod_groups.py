"""`get groups -w`: the groups of a cluster as a feed of what has changed."""

from collections.abc import Sequence

from jobset_gate.cli import settings_file
from jobset_gate.cli.commands import get_pod_groups
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.fetch.controller_status import ControllerState
from jobset_gate.cli.get_options import GetOptions
from jobset_gate.cli.options import OutputFormat
from jobset_gate.cli.printers import pod_group_json
from jobset_gate.cli.printers.change_printer import ChangeFormat, ChangePrinter, PrintedItem
from jobset_gate.cli.printers.pod_group_table import name, row, titles
from jobset_gate.cli.watch import loop
from jobset_gate.cli.watch.pod_group_source import PodGroupWatch
from jobset_gate.kube.client import Client
from jobset_gate.podgroups.status import GroupStatus


async def run(client: Client, namespace: str | None, wanted: GetOptions, keeper: ControllerState) -> ExitCode:
    """Ends by an interruption; at once if what was named is not there. Raises Failed where no pods may be watched."""
    settings = settings_file.read(wanted.config).admission.groups
    async with PodGroupWatch(client, namespace, settings, controlled=bool(keeper.leads)) as live:
        await live.ready()
        feed = _Feed(live, namespace, wanted, keeper)
        return await loop.print_feed(feed, ChangePrinter(feed.form))


class _Feed:
    """Those groups that are wanted."""

    def __init__(self, live: PodGroupWatch, namespace: str | None, wanted: GetOptions, keeper: ControllerState) -> None:
        self._live, self._namespace, self._wanted, self._keeper = live, namespace, wanted, keeper
        self._look = {"wide": wanted.output is OutputFormat.WIDE, "namespaces": namespace is None}
        self.form = ChangeFormat(wanted.output, titles(**self._look), "PHASE", "phase", wanted.headers)
        self.change = live.change

    async def found(self) -> list[GroupStatus]:
        return [it for it in await self._live.reports() if self._wanted.selects(it.key.name)]

    def absent(self, found: Sequence[GroupStatus]) -> bool:
        get_pod_groups.warn(self._live.fetched, self._keeper, self._wanted.caller)
        return get_pod_groups.absent(found, self._wanted, self._namespace)

    def item(self, one: GroupStatus) -> PrintedItem:
        key = (one.key.namespace, one.key.name, str(one.key.design))
        cells = row(one, self._live.now(), **self._look)
        return PrintedItem(key, cells, lambda: pod_group_json.pod_group_json(one), f"group/{name(one)}")
