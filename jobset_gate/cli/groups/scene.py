"""One pod group, live, as `watch` shows it."""

from dataclasses import dataclass

from jobset_gate.cli.groups import ending
from jobset_gate.cli.groups.live import LiveGroups
from jobset_gate.cli.looking.objects import Absent
from jobset_gate.cli.verbs.scenes import Moment
from jobset_gate.cli.verbs.standing import End
from jobset_gate.explain_group import explain_group
from jobset_gate.explained import Controller
from jobset_gate.groups.report import Report
from jobset_gate.kube.client import Client
from jobset_gate.settings import Groups


@dataclass(frozen=True, slots=True)
class About:
    """The group that is meant, and what is known besides."""

    namespace: str
    name: str
    controller: Controller
    settings: Groups
    before: str = ""
    """What else was looked for under that name, for people."""


class GroupScene(LiveGroups):
    """A group of any of the ways; of several of one name the first, by its design."""

    end = End.SATISFIED

    def __init__(self, client: Client, about: About) -> None:
        super().__init__(client, about.namespace, about.settings, controlled=bool(about.controller.leads))
        self.subject = f"podgroup/{about.name}"
        self._about = about

    async def ready(self) -> None:
        """Raises Absent if there is no such group."""
        await super().ready()
        if await self.report() is None:
            its = self._about
            raise Absent(f"{its.before}pod group {its.name} not found in namespace {its.namespace}")

    async def look(self) -> Moment:
        """How it is now."""
        report = await self.report()
        its = ending.standing(report)
        if report is None:
            return Moment(None, its, self.trouble)
        unknown = self.reading.missing
        told = explain_group(report, self.now(), controller=self._about.controller, unknown=unknown)
        return Moment(told, its, self.trouble)

    async def report(self) -> Report | None:
        """The group, if it is there."""
        return next((it for it in await self.reports() if it.key.name == self._about.name), None)
