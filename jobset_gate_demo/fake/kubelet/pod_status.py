"""A pod's status as a kubelet writes it: container states, conditions, phase; times in whole seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

from jobset_gate.objects.unstructured import nested
from jobset_gate_demo.fake.objects import Json, stamp


def waiting(reason: str, message: str = "") -> Json:
    """The state of a container that has not started yet, or is between two attempts."""
    return {"waiting": {"reason": reason} | ({"message": message} if message else {})}


def running(at: float) -> Json:
    return {"running": {"startedAt": stamp(at)}}


def terminated(code: int, finished: float, before: Json, message: str = "", reason: str = "") -> Json:
    """`before`: the state in which it ran."""
    started, at = nested(before, "running", "startedAt"), stamp(finished)
    ended = {"exitCode": code, "reason": reason or ("Error" if code else "Completed")}
    ended |= {"startedAt": started or at, "finishedAt": at}
    return {"terminated": ended | ({"message": message} if message else {})}


@dataclass(slots=True)
class ContainerRecord:
    """`state` and `last` as they stand in the pod's status."""

    name: str
    image: str
    state: Json
    last: Json = field(default_factory=dict)
    restarts: int = 0

    @property
    def running(self) -> bool:
        return "running" in self.state

    @property
    def waits_for(self) -> str:
        """The reason why it waits; "" if it does not."""
        return str(nested(self.state, "waiting", "reason") or "")

    @property
    def exit_code(self) -> int | None:
        """None: it has not ended."""
        return nested(self.state, "terminated", "exitCode")  # type: ignore[no-any-return]

    def start_again(self) -> None:
        """Its last run becomes the one before."""
        self.last = self.state
        self.restarts += 1

    def status(self, *, init: bool) -> Json:
        return {
            "name": self.name,
            "image": self.image,
            "ready": self.exit_code == 0 if init else self.running,
            "started": self.running,
            "restartCount": self.restarts,
            "state": self.state,
            "lastState": self.last,
        }


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
    def phase(self) -> str:
        codes = [record.exit_code for record in self.mains]
        succeeded = all(code == 0 for code in codes)
        if self.killed:
            return "Succeeded" if succeeded else "Failed"
        begun = any(not record.waits_for or record.last for record in self.mains)
        if not begun and any(record.exit_code != 0 for record in self.init):
            failed = self.restart_policy == "Never" and any(record.exit_code for record in self.init)
            return "Failed" if failed else "Pending"
        if self.restart_policy != "Always" and succeeded:
            return "Succeeded"
        if self.restart_policy == "Never" and None not in codes:
            return "Failed"
        return "Running" if begun else "Pending"

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


def render(record: PodRecord, now: float) -> Json:
    """The status to write; it updates the record's conditions, whose times change with their status only."""
    unready = [item.name for item in record.mains if not item.running]
    reason, message = ("PodCompleted" if record.phase == "Succeeded" else "PodFailed"), ""
    if not record.ended:
        reason = "ContainersNotReady" if unready else ""
        message = f"containers with unready status: [{' '.join(unready)}]" if unready else ""
    for kind, why, text in (("Ready", reason, message), ("PodScheduled", "", "")):
        record.conditions[kind] = _condition(record.conditions.get(kind), kind, now, reason=why, message=text)
    status: Json = {
        "phase": record.phase,
        "conditions": list(record.conditions.values()),
        "startTime": stamp(record.started if record.started is not None else now),
        "containerStatuses": [item.status(init=False) for item in record.mains],
    }
    if record.init:
        status["initContainerStatuses"] = [item.status(init=True) for item in record.init]
    return status


def _condition(found: Json | None, kind: str, now: float, **texts: str) -> Json:
    """True without a reason."""
    status = "False" if texts["reason"] else "True"
    moved = found is None or found["status"] != status
    at = stamp(now) if moved or found is None else found["lastTransitionTime"]
    # null removes the value of an earlier patch
    said = {key: text or None for key, text in texts.items() if text or (found is not None and key in found)}
    return {"type": kind, "status": status, "lastTransitionTime": at, **said}
