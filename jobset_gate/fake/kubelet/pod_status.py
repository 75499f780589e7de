"""A pod's status as a kubelet writes it: container states, conditions, phase; times in whole seconds."""

from __future__ import annotations

import hashlib
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
    """What is known of one container. `sidecar`: an init container that keeps running."""

    name: str
    image: str
    state: State
    sidecar: bool = False
    last: TerminatedState | None = None
    restarts: int = 0

    @property
    def passed(self) -> bool:
        """An init container behind which the next one may start."""
        if self.sidecar:
            return isinstance(self.state, RunningState)
        return isinstance(self.state, TerminatedState) and self.state.code == 0

    @property
    def running(self) -> bool:
        return isinstance(self.state, RunningState)


@dataclass(slots=True)
class PodRecord:
    """What a kubelet knows of one pod. `started` is None until the kubelet has seen it."""

    uid: str
    restart_policy: str
    init: list[ContainerRecord]
    mains: list[ContainerRecord]
    started: float | None = None
    sandbox: bool = False
    killed: bool = False
    """It was told to go and its containers have ended."""
    conditions: dict[str, Json] = field(default_factory=dict)

    @property
    def initialized(self) -> bool:
        return all(book.passed or (book.sidecar and book.restarts > 0) for book in self.init) or self._main_started

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
        return any(not isinstance(book.state, WaitingState) or book.last is not None for book in self.mains)

    def _all_ended(self, *, ok: bool) -> bool:
        states = [book.state for book in self.mains]
        return all(isinstance(state, TerminatedState) and (state.code == 0 or not ok) for state in states)


def render(book: PodRecord, now: float, *, host_ip: str) -> Json:
    """The status to write; also keeps the book's conditions, whose times move only when their status does."""
    phase = book.phase
    for kind, stands in _conditions(book, phase).items():
        _set(book.conditions, kind, now, *stands)
    status: Json = {
        "phase": phase,
        "conditions": list(book.conditions.values()),
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "startTime": stamp(book.started if book.started is not None else now),
        "containerStatuses": [_container(book.uid, item, init=False) for item in book.mains],
    }
    if book.init:
        status["initContainerStatuses"] = [_container(book.uid, item, init=True) for item in book.init]
    if book.sandbox:
        ip = pod_ip(book.uid)
        status |= {"podIP": ip, "podIPs": [{"ip": ip}]}
    return status


def pod_ip(uid: str) -> str:
    one, two, three = hashlib.sha256(uid.encode()).digest()[:3]
    return f"10.{one}.{two}.{three}"


def _failed(book: ContainerRecord) -> bool:
    return isinstance(book.state, TerminatedState) and book.state.code != 0


def _conditions(book: PodRecord, phase: str) -> dict[str, tuple[str, str, str]]:
    yes = ("True", "", "")
    pending = [item.name for item in book.init if not item.passed]
    unready = [item.name for item in book.mains if not item.running]
    initialized = yes
    if not book.initialized:
        initialized = ("False", "ContainersNotInitialized", f"containers with incomplete status: [{' '.join(pending)}]")
    ready = yes
    if phase in ("Succeeded", "Failed"):
        ready = ("False", "PodCompleted" if phase == "Succeeded" else "PodFailed", "")
    elif unready:
        ready = ("False", "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
    return {
        "PodReadyToStartContainers": yes if book.sandbox and not book.killed else ("False", "", ""),
        "Initialized": initialized,
        "Ready": ready,
        "ContainersReady": ready,
        "PodScheduled": yes,
    }


def _set(conditions: dict[str, Json], kind: str, now: float, status: str, reason: str, message: str) -> None:  # noqa: PLR0917
    found = conditions.get(kind)
    moved = found is None or found["status"] != status
    at = stamp(now) if moved or found is None else found["lastTransitionTime"]
    built: Json = {"type": kind, "status": status, "lastTransitionTime": at}
    for key, text in (("reason", reason), ("message", message)):
        if text or (found is not None and key in found):
            built[key] = text or None  # null takes away what an earlier patch has put there
    conditions[kind] = built


def _container(uid: str, book: ContainerRecord, *, init: bool) -> Json:
    ended_well = isinstance(book.state, TerminatedState) and book.state.code == 0
    status: Json = {
        "name": book.name,
        "image": book.image,
        "imageID": "" if isinstance(book.state, WaitingState) and book.last is None else _hash("sha256:", book.image),
        "ready": book.running if not init or book.sidecar else ended_well,
        "started": book.running,
        "restartCount": book.restarts,
        "state": _state(book.state, _id(uid, book, book.restarts)),
        "lastState": _state(book.last, _id(uid, book, book.restarts - 1)) if book.last else {},
    }
    if not isinstance(book.state, WaitingState):
        status["containerID"] = _id(uid, book, book.restarts)
    return status


def _state(state: State, container_id: str) -> Json:
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
                "containerID": container_id,
            }
            return {"terminated": ended | ({"message": state.message} if state.message else {})}


def _id(uid: str, book: ContainerRecord, number: int) -> str:
    return _hash("containerd://", f"{uid}/{book.name}/{number}")


def _hash(prefix: str, text: str) -> str:
    return prefix + hashlib.sha256(text.encode()).hexdigest()
