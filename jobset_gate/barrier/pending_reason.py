"""Classifies pods that have not started: reason (A9) and the scheduler's or kubelet's message. First match wins."""

from collections.abc import Sequence
from functools import lru_cache

from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import PendingCause, PendingReason
from jobset_gate.objects import terminal_text

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
"""Waiting reasons of a container that the kubelet has not reached yet."""
_OWN_CONTAINERS = frozenset({names.BARRIER_CONTAINER, names.PREFETCH_CONTAINER})
_RUNNER = f"{names.PREFETCH_CONTAINER}-"

MAX_MESSAGE = 300
"""Characters of a message that are kept: ten thousand pods may each have one."""
_MOST_GATES = 5
_PART_LIMIT = 2 * MAX_MESSAGE
"""Characters read of each part; image names and messages have any length."""


def classify_pending(
    status: wire.PodStatus, gates: Sequence[wire.SchedulingGate] | None, *, bound: bool, deleting: bool
) -> PendingCause:
    """Why a pod does not count as started. `gates`: its schedulingGates."""
    if deleting:
        return PendingCause(reason=PendingReason.TERMINATING, message="is being deleted")
    if status.phase == "Failed":
        return _cause(
            PendingReason.NOT_CREATED, "its pod failed", status.reason, status.message, _failure_message(status)
        )
    if not bound:
        return _unscheduled(status, gates)
    return _on_node(status)


def _unscheduled(status: wire.PodStatus, gates: Sequence[wire.SchedulingGate] | None) -> PendingCause:
    if gates:  # named, since the scheduler's message does not say whose they are: Kueue's, for one
        names_of = ", ".join(it.name[:MAX_MESSAGE] for it in gates[:_MOST_GATES])
        return _cause(PendingReason.UNSCHEDULED, f"waits for its scheduling gates to be removed: {names_of}")
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return _cause(PendingReason.UNSCHEDULED, condition.message or condition.reason)
    return PendingCause(reason=PendingReason.UNSCHEDULED, message="no scheduler has looked at it yet")


def _on_node(status: wire.PodStatus) -> PendingCause:
    holder, following = _current_container(status)
    if holder is None:
        return PendingCause(reason=PendingReason.STARTING, message="its kubelet has not reported a container yet")
    state = holder.state or wire.ContainerState()
    if state.terminated is not None and state.terminated.exit_code != 0:
        return _crashed(holder, state.terminated)
    if state.terminated is not None:
        return _next(f"{holder.name} is done", following)
    if state.running is None:
        return _waiting(holder, state.waiting or wire.StateDetail())
    if holder.ready:
        return _next(f"{holder.name} is up", following)
    return PendingCause(reason=PendingReason.EARLIER_INIT, message=f"{holder.name} is still running")


def _next(done: str, following: str) -> PendingCause:
    """The kubelet reports failed pulls only; a prefetching container does nothing but pull."""
    if following.startswith(_RUNNER):
        return _cause(PendingReason.IMAGE_PULL, f"{following}: the image of a main container is being pulled")
    return _cause(PendingReason.STARTING, f"{done}, the next container is being created")


def _waiting(holder: wire.ContainerStatus, waiting: wire.StateDetail) -> PendingCause:
    if waiting.reason in _PULL_REASONS:
        why = PendingReason.BARRIER_IMAGE_PULL if holder.name in _OWN_CONTAINERS else PendingReason.IMAGE_PULL
        return _cause(why, holder.name, waiting.reason, waiting.message)
    last = holder.last_state and holder.last_state.terminated
    if waiting.reason == "CrashLoopBackOff" or last is not None:
        return _crashed(holder, last or wire.StateDetail(), waiting.reason)
    return _cause(PendingReason.STARTING, holder.name, waiting.reason, waiting.message)


def _current_container(status: wire.PodStatus) -> tuple[wire.ContainerStatus | None, str]:
    """The last init container up to the barrier that was started, else the first; and the next one's name or ""."""
    first = last = None
    following = ""
    for container in status.init_container_statuses or ():
        first = first or container
        state = container.state or wire.ContainerState()
        waits = state.running is None and state.terminated is None
        untouched = waits and (state.waiting is None or state.waiting.reason in _NOT_YET)
        if not untouched:
            last, following = container, ""
        elif last is not None:
            following = following or container.name
        if container.name == names.BARRIER_CONTAINER:
            break
    return last or first, following


def _crashed(container: wire.ContainerStatus, end: wire.StateDetail, reason: str = "") -> PendingCause:
    code = f"exit code {end.exit_code}" if end.exit_code >= 0 else ""
    return _cause(PendingReason.CRASH_LOOP, container.name, reason or end.reason, code, end.message)


def _failure_message(status: wire.PodStatus) -> str:
    """Of the init container before the barrier that failed the pod."""
    for container in status.init_container_statuses or ():
        if container.name == names.BARRIER_CONTAINER:
            break
        end = None if container.state is None else container.state.terminated
        if end is not None and end.exit_code != 0:
            return _crashed(container, end).message
    return ""


def _cause(why: PendingReason, *parts: str) -> PendingCause:
    return _shared_cause(why, *(part[:_PART_LIMIT] for part in parts))


@lru_cache(maxsize=1024)
def _shared_cause(why: PendingReason, *parts: str) -> PendingCause:
    """One object for all pods with the same message. Containers write termination messages, so they are escaped."""
    detail = ": ".join(part.strip() for part in parts if part.strip())
    return PendingCause(reason=why, message=terminal_text.line(detail)[:MAX_MESSAGE])
