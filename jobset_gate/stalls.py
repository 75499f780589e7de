"""Why a pod has not started: one class out of A9 and the scheduler's or kubelet's own words.

First match wins, from the pod as a whole down to the init container that holds it up.
"""

from functools import lru_cache

from jobset_gate import names, wire
from jobset_gate.model import Stall, Why

_PULL_REASONS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
_NOT_YET = frozenset({"", "PodInitializing"})
"""What the kubelet says of a container whose turn has not come."""

DETAIL_LIMIT = 300
"""Characters of a detail that are kept: ten thousand pods may each carry one."""


def classify(status: wire.PodStatus, barrier: wire.ContainerStatus | None, *, bound: bool, deleting: bool) -> Stall:
    """The reason why a pod does not count as started, for a pod that does not."""
    if deleting:
        return Stall(why=Why.TERMINATING, detail="is being deleted")
    if status.phase == "Failed":
        return _stall(Why.NOT_CREATED, "its pod failed", status.reason, status.message)
    if not bound:
        return _unscheduled(status)
    return _on_its_node(status, barrier)


def _unscheduled(status: wire.PodStatus) -> Stall:
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return _stall(Why.UNSCHEDULED, condition.message or condition.reason)
    return Stall(why=Why.UNSCHEDULED, detail="no scheduler has looked at it yet")


def _on_its_node(status: wire.PodStatus, barrier: wire.ContainerStatus | None) -> Stall:
    holder = _holder(status)
    if holder is None:
        return Stall(why=Why.STARTING, detail="its kubelet has not reported a container yet")
    ours = holder is barrier
    state = holder.state or wire.ContainerState()
    if state.terminated is not None and state.terminated.exit_code == 0:
        return Stall(why=Why.STARTING, detail=f"{holder.name} is done, the next container is being created")
    if state.terminated is not None:
        return _crashed(holder, state.terminated)
    if state.running is not None:
        return Stall(why=Why.EARLIER_INIT, detail=f"{holder.name} is still running")
    waiting = state.waiting or wire.Waiting()
    if waiting.reason in _PULL_REASONS:
        return _stall(Why.BARRIER_IMAGE_PULL if ours else Why.IMAGE_PULL, holder.name, waiting.reason, waiting.message)
    return _waiting(holder, waiting)


def _waiting(holder: wire.ContainerStatus, waiting: wire.Waiting) -> Stall:
    last = holder.last_state and holder.last_state.terminated
    if waiting.reason == "CrashLoopBackOff" or last is not None:
        return _crashed(holder, last or wire.Terminated(), waiting.reason)
    return _stall(Why.STARTING, holder.name, waiting.reason, waiting.message)


def _holder(status: wire.PodStatus) -> wire.ContainerStatus | None:
    """The init container whose turn it is: the last one up to the barrier that has been touched, else the first."""
    first = last = None
    for container in status.init_container_statuses or ():
        first = first or container
        state = container.state or wire.ContainerState()
        waits = state.running is None and state.terminated is None
        untouched = waits and (state.waiting is None or state.waiting.reason in _NOT_YET)
        if not untouched:
            last = container
        if container.name == names.BARRIER_CONTAINER:
            break
    return last or first


def _crashed(container: wire.ContainerStatus, end: wire.Terminated, reason: str = "") -> Stall:
    code = f"exit code {end.exit_code}" if end.exit_code >= 0 else ""
    return _stall(Why.CRASH_LOOP, container.name, reason or end.reason, code, end.message)


@lru_cache(maxsize=1024)
def _stall(why: Why, *parts: str) -> Stall:
    """One object for all pods that wait for the same reason: schedulers tell thousands of pods the same sentence."""
    detail = ": ".join(part.strip() for part in parts if part.strip())
    return Stall(why=why, detail=" ".join(detail.split())[:DETAIL_LIMIT])
