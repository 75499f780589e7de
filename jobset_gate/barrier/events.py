"""Reads Events of a gang: rejected pods, provisioned nodes, kubelets' errors (A9).

Used by the controller before a timeout, and by `why`.
"""

from collections.abc import Iterable, Mapping

import msgspec

from jobset_gate.barrier import wire
from jobset_gate.barrier.model import GangSnapshot, PendingCause, PendingReason, PodSeen
from jobset_gate.barrier.pending_reason import MAX_MESSAGE
from jobset_gate.objects import terminal_text

MAX_NAME = 253
"""Characters that are kept of an object's name in an Event."""

MAX_EVENTS = 500

FAILED_CREATE = "FailedCreate"
"""Of a Job: a quota or an admission check rejected a pod."""
NODE_PROVISIONING_REASONS = ("TriggeredScaleUp", "Nominated")
"""Of a pod: cluster autoscaler or Karpenter creates a node for it."""
KUBELET_REASONS = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox")
"""Of a pod whose kubelet reports no container yet."""


class InvolvedObject(wire.WireStruct, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class CoreEvent(wire.WireStruct, frozen=True):
    metadata: wire.ObjectMeta = wire.ObjectMeta()
    involved_object: InvolvedObject = InvolvedObject()
    type: str = ""
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None
    first_timestamp: str | None = None
    count: int | None = None

    @property
    def last_seen(self) -> str:
        """Time of the last occurrence, "" if unknown."""
        return self.last_timestamp or self.event_time or self.first_timestamp or ""


class CoreEventList(wire.WireStruct, frozen=True):
    items: tuple[CoreEvent, ...] = ()


def denials_by_job(rejected: Iterable[CoreEvent]) -> dict[str, str]:
    """By Job, the message of the last rejected pod."""
    return {
        it.involved_object.name[:MAX_NAME]: _shorten(it.message) for it in sorted(rejected, key=lambda it: it.last_seen)
    }


def with_events(
    seen: GangSnapshot, rejected: Iterable[CoreEvent], provisioned: Iterable[CoreEvent], kubelet: Iterable[CoreEvent]
) -> GangSnapshot:
    """The snapshot with causes from these Events."""
    jobs = {job.name for job in seen.jobs}
    unscheduled = {pod.name for pod in seen.pods if not pod.bound}
    denials = {job: message for job, message in denials_by_job(rejected).items() if job in jobs}
    provisioning = {it.involved_object.name for it in provisioned if it.involved_object.name in unscheduled}
    by_uid = {it.involved_object.uid: it for it in sorted(kubelet, key=lambda it: it.last_seen)}
    return msgspec.structs.replace(
        seen,
        denials=tuple(sorted(denials.items())),
        provisioning=frozenset(provisioning),
        pods=tuple(_with_kubelet_event(pod, by_uid) for pod in seen.pods) if by_uid else seen.pods,
    )


def _with_kubelet_event(pod: PodSeen, by_uid: Mapping[str, CoreEvent]) -> PodSeen:
    """A pod whose kubelet reports no container, with the message of the kubelet's Event."""
    event = by_uid.get(pod.uid)
    if event is None or pod.pending is None or pod.pending.reason is not PendingReason.STARTING:
        return pod
    cause = PendingCause(reason=PendingReason.STARTING, message=_shorten(f"{event.reason}: {event.message}"))
    return msgspec.structs.replace(pod, pending=cause)


def _shorten(message: str) -> str:
    return terminal_text.line(message)[:MAX_MESSAGE]
