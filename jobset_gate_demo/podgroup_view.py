"""The progress of the gangs, from watches on their pods and PodGroups."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jobset_gate import names
from jobset_gate.objects.unstructured import as_list, nested
from jobset_gate_demo.fake.view import ObjectView
from jobset_gate_demo.frame import ProgressRow

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PodGroupCount:
    name: str
    expected: int
    bound: int
    running: int
    succeeded: int
    held: int
    """By our gate."""
    pending: int
    """The scheduler has found no node for them."""

    @property
    def row(self) -> ProgressRow:
        """With the numbers that say something now."""
        parts = [f"{self.bound}/{self.expected} bound"]
        for many, what in ((self.running, "running"), (self.pending, "pending"), (self.held, "held")):
            parts += [f"{many} {what}"] if many else []
        parts += ["done"] if self.finished else []
        return ProgressRow(self.name, self.bound, self.expected, ", ".join(parts))

    @property
    def complete(self) -> bool:
        """All of its pods run, so that it can work."""
        return self.running == self.expected

    @property
    def finished(self) -> bool:
        """Its work is done."""
        return self.succeeded == self.expected


class PodGroupWatcher:
    """Counts the pods of gangs of `size`; `groups` are the PodGroups, where there are any."""

    def __init__(self, gangs: tuple[str, ...], pods: ObjectView, groups: ObjectView | None, size: int) -> None:
        self._gangs, self._pods, self._groups, self._size = gangs, pods, groups, size

    def counts(self) -> list[PodGroupCount]:
        """One for each gang, as it stands."""
        return [self.count(gang) for gang in self._gangs]

    def rows(self) -> list[ProgressRow]:
        """The same as bars."""
        return [one.row for one in self.counts()]

    def count(self, gang: str) -> PodGroupCount:
        pods = [it for it in self._pods.all() if it["metadata"]["labels"].get(names.PLUGINS_NAME) == gang]
        phases = [nested(it, "status", "phase") for it in pods]
        held, bound = sum(map(_held, pods)), sum(bool(it["spec"].get("nodeName")) for it in pods)
        running, succeeded = phases.count("Running"), phases.count("Succeeded")
        return PodGroupCount(gang, self._size, bound, running, succeeded, held, len(pods) - bound - held)

    def why(self, gang: str) -> str:
        """What the group says of itself while it is held."""
        groups = [it for it in self._groups.all() if it["metadata"]["name"] == gang] if self._groups else []
        return next((_message(it, "type", names.POD_GROUP_CONDITION) for it in groups), "")

    def scheduler_message(self, gang: str) -> str:
        """Of a pod that found no node."""
        pods = [it for it in self._pods.all() if it["metadata"]["name"].startswith(f"{gang}-")]
        return next(filter(None, (_message(it, "reason", "Unschedulable") for it in pods)), "")

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait for something to be true of the counts; False if it was not within so many seconds."""
        return await _within(self._pods, holds, seconds)

    async def until_message(self, gang: str, text: str, seconds: float) -> bool:
        """Wait for a group to say something of itself."""
        return self._groups is not None and await _within(self._groups, lambda: text in self.why(gang), seconds)


async def _within(view: ObjectView, holds: Callable[[], bool], seconds: float) -> bool:
    try:
        await view.until(lambda _: holds(), seconds)
    except TimeoutError:
        return False
    return True


def _held(pod: Json) -> bool:
    return any(gate["name"] == names.POD_GROUP_GATE for gate in pod["spec"].get("schedulingGates") or ())


def _message(it: Json, key: str, value: str) -> str:
    """Of the condition that has this value there."""
    conditions = as_list(nested(it, "status", "conditions"))
    return next((str(one.get("message", "")) for one in conditions if one.get(key) == value), "")
