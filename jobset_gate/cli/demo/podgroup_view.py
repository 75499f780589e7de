"""The progress of the gangs, from watches on their pods and PodGroups."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jobset_gate import names
from jobset_gate.cli.demo.podgroup_scenario import GANGS
from jobset_gate.fake.view import ObjectView
from jobset_gate.objects.unstructured import as_list, nested

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PodGroupRow:
    """The pods of one gang, counted."""

    name: str
    expected: int
    bound: int = 0
    running: int = 0
    succeeded: int = 0
    held: int = 0
    """By our gate."""
    pending: int = 0
    """The scheduler has found no node for them."""
    why: str = ""
    """What the group says of itself while it is held."""

    @property
    def done(self) -> int:
        """How far the bar goes."""
        return self.bound

    @property
    def counts(self) -> str:
        """The numbers that say something now."""
        parts = [f"{self.bound}/{self.expected} bound"]
        for many, what in ((self.running, "running"), (self.pending, "pending"), (self.held, "held")):
            parts += [f"{many} {what}"] if many else []
        return ", ".join([*parts, "done"] if self.finished else parts)

    @property
    def complete(self) -> bool:
        """All of its pods run, so that it can work."""
        return self.running == self.expected

    @property
    def finished(self) -> bool:
        """Its work is done."""
        return self.succeeded == self.expected


def line(rows: Sequence[PodGroupRow]) -> str:
    """Both gangs in one line, once there is something to say."""
    return "; ".join(f"{row.name} {row.counts}" for row in rows if row.bound + row.pending + row.held)


class PodGroupWatcher:
    """Reads the rows off the pods; `groups` are the PodGroups, where there are any."""

    def __init__(self, pods: ObjectView, groups: ObjectView | None, size: int) -> None:
        self._pods, self._groups, self._size = pods, groups, size

    def rows(self) -> list[PodGroupRow]:
        """One for each gang, as it stands."""
        return [self.row(gang) for gang in GANGS]

    def row(self, gang: str) -> PodGroupRow:
        """That of one gang."""
        pods = [it for it in self._pods.all() if it["metadata"]["labels"].get(names.PLUGINS_NAME) == gang]
        phases = [nested(it, "status", "phase") for it in pods]
        held = sum(_held(it) for it in pods)
        bound = sum(_bound(it) for it in pods)
        return PodGroupRow(
            name=gang,
            expected=self._size,
            bound=bound,
            running=phases.count("Running"),
            succeeded=phases.count("Succeeded"),
            held=held,
            pending=len(pods) - bound - held,
            why=self._why(gang),
        )

    def scheduler_message(self, gang: str) -> str:
        """Of a pod that found no node."""
        parts = (_unschedulable(it) for it in self._pods.all() if it["metadata"]["name"].startswith(f"{gang}-"))
        return next((text for text in parts if text), "")

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait for something to be true of the rows; False if it was not within so many seconds."""
        try:
            await self._pods.until(lambda _: holds(), seconds)
        except TimeoutError:
            return False
        return True

    async def until_message(self, gang: str, text: str, seconds: float) -> bool:
        """Wait for a group to say something of itself."""
        if self._groups is None:
            return False
        try:
            await self._groups.until(lambda _: text in self._why(gang), seconds)
        except TimeoutError:
            return False
        return True

    def _why(self, gang: str) -> str:
        groups = [it for it in self._groups.all() if it["metadata"]["name"] == gang] if self._groups else []
        conditions = (one for it in groups for one in as_list(nested(it, "status", "conditions")))
        return next((str(it["message"]) for it in conditions if it["type"] == names.POD_GROUP_CONDITION), "")


def _bound(pod: Json) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _held(pod: Json) -> bool:
    return any(gate["name"] == names.POD_GROUP_GATE for gate in pod["spec"].get("schedulingGates") or ())


def _unschedulable(pod: Json) -> str:
    conditions = as_list(nested(pod, "status", "conditions"))
    return next((str(it.get("message", "")) for it in conditions if it.get("reason") == "Unschedulable"), "")
