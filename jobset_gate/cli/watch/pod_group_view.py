"""One pod group, live, as `watch` shows it."""

from dataclasses import dataclass

from jobset_gate.cli.fetch.objects import ObjectNotFound
from jobset_gate.cli.watch import pod_group_outcome
from jobset_gate.cli.watch.outcome import WaitGoal
from jobset_gate.cli.watch.pod_group_source import PodGroupWatch
from jobset_gate.cli.watch.view import ViewState
from jobset_gate.explain.model import ControllerStatus
from jobset_gate.explain.podgroup import explain_pod_group
from jobset_gate.kube.client import Client
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.settings import Groups


@dataclass(frozen=True, slots=True)
class PodGroupTarget:
    """The group that is meant, and what is known besides."""

    namespace: str
    name: str
    controller: ControllerStatus
    settings: Groups
    before: str = ""
    """What else was looked for under that name, for people."""


class PodGroupView(PodGroupWatch):
    """A group of any of the ways; of several of one name the first, by its design."""

    end = WaitGoal.SATISFIED

    def __init__(self, client: Client, about: PodGroupTarget) -> None:
        super().__init__(client, about.namespace, about.settings, controlled=bool(about.controller.leads))
        self.subject = f"podgroup/{about.name}"
        self._about = about

    async def ready(self) -> None:
        """Raises Absent if there is no such group."""
        await super().ready()
        if await self.report() is None:
            its = self._about
            raise ObjectNotFound(f"{its.before}pod group {its.name} not found in namespace {its.namespace}")

    async def look(self) -> ViewState:
        """How it is now."""
        report = await self.report()
        its = pod_group_outcome.pod_group_outcome(report)
        if report is None:
            return ViewState(None, its, self.problem)
        unknown = self.fetched.missing
        told = explain_pod_group(report, self.now(), controller=self._about.controller, unknown=unknown)
        return ViewState(told, its, self.problem)

    async def report(self) -> GroupStatus | None:
        """The group, if it is there."""
        return next((it for it in await self.reports() if it.key.name == self._about.name), None)
