"""A pod's status as a kubelet writes it: container states, conditions, phase; times in whole seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

from jobset_gate.fake.objects import Json, stamp


@dataclass(frozen=True, slots=True)
class WaitingState:
    """Not started yet, or between two attempts."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class RunningState:
    """Since a time of the node's clock."""

    at: float


@dataclass(frozen=True, slots=True)
class TerminatedState:
    """Ended; `message` is the termination message."""

    code: int
    started: float
    finished: float
    message: str = ""
    reason: str = ""

    @property
    def why(self) -> str:
        return self.reason or ("Completed" if self.code == 0 else "Error")


State = WaitingState | RunningState | TerminatedState


@dataclass(slots=True)
class ContainerRecord:
    name: str
    image: str
    state: State
    last: TerminatedState | None = None
    restarts: int = 0

    @property
    def passed(self) -> bool:
        """An init container behind which the next one may start."""
        return isinstance(self.state, TerminatedState) and self.state.code == 0

    @property
    def running(self) -> bool:
        return isinstance(self.state, RunningState)


@dataclass(slots=True)
class PodRecord:
    """The state of one pod. `started` is None until the kubelet has seen it."""

    restart_policy: str
    init: list[ContainerRecord]
    mains: list[ContainerRecord]
    started: float | None = None
    killed: bool = False
    """Deleted, and its containers have ended."""
    conditions: dict[str, Json] = field(default_factory=dict)

    @property
    def initialized(self) -> bool:
        return self._main_started or all(one.passed for one in self.init)

    @property
    def phase(self) -> str:
        if self.killed:
            return "Succeeded" if self._all_ended(ok=True) else "Failed"
        if not self.initialized:
            return "Failed" if self.restart_policy == "Never" and any(map(_failed, self.init)) else "Pending"
        if self.restart_policy != "Always" and self._all_ended(ok=True):
            return "Succeeded"
        if self.restart_policy == "Never" and self._all_ended(ok=False):
            return "Failed"
        return "Running" if self._main_started else "Pending"

    @property
    def _main_started(self) -> bool:
        return any(not isinstance(record.state, WaitingState) or record.last is not None for record in self.mains)

    def _all_ended(self, *, ok: bool) -> bool:
        states = [record.state for record in self.mains]
        return all(isinstance(state, TerminatedState) and (state.code == 0 or not ok) for state in states)


def render(record: PodRecord, now: float) -> Json:
    """The status to write; it updates the record's conditions, whose times change with their status only."""
    phase = record.phase
    for kind, stands in _conditions(record, phase).items():
        _set(record.conditions, kind, now, *stands)
    status: Json = {
        "phase": phase,
        "conditions": list(record.conditions.values()),
        "startTime": stamp(record.started if record.started is not None else now),
        "containerStatuses": [_container(item, init=False) for item in record.mains],
    }
    if record.init:
        status["initContainerStatuses"] = [_container(item, init=True) for item in record.init]
    return status


def _failed(record: ContainerRecord) -> bool:
    return isinstance(record.state, TerminatedState) and record.state.code != 0


def _conditions(record: PodRecord, phase: str) -> dict[str, tuple[str, str, str]]:
    yes = ("True", "", "")
    unready = [item.name for item in record.mains if not item.running]
    ready = yes
    if phase in ("Succeeded", "Failed"):
        ready = ("False", "PodCompleted" if phase == "Succeeded" else "PodFailed", "")
    elif unready:
        ready = ("False", "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
    return {"Ready": ready, "PodScheduled": yes}


def _set(conditions: dict[str, Json], kind: str, now: float, status: str, reason: str, message: str) -> None:  # noqa: PLR0917
    found = conditions.get(kind)
    moved = found is None or found["status"] != status
    at = stamp(now) if moved or found is None else found["lastTransitionTime"]
    built: Json = {"type": kind, "status": status, "lastTransitionTime": at}
    for key, text in (("reason", reason), ("message", message)):
        if text or (found is not None and key in found):
            built[key] = text or None  # null removes the value of an earlier patch
    conditions[kind] = built


def _container(record: ContainerRecord, *, init: bool) -> Json:
    ended_well = isinstance(record.state, TerminatedState) and record.state.code == 0
    return {
        "name": record.name,
        "image": record.image,
        "ready": ended_well if init else record.running,
        "started": record.running,
        "restartCount": record.restarts,
        "state": _state(record.state),
        "lastState": _state(record.last) if record.last else {},
    }


def _state(state: State) -> Json:
    match state:
        case WaitingState():
            return {"waiting": {"reason": state.reason} | ({"message": state.message} if state.message else {})}
        case RunningState():
            return {"running": {"startedAt": stamp(state.at)}}
        case TerminatedState():
            ended = {
                "exitCode": state.code,
                "reason": state.why,
                "startedAt": stamp(state.started),
                "finishedAt": stamp(state.finished),
            }
            return {"terminated": ended | ({"message": state.message} if state.message else {})}
