"""What Events say of a gang: what a quota refused, which nodes are on their way, what a kubelet cannot do (A9).

The same for a controller before its verdict and for a person who asks why.
"""

from collections.abc import Iterable, Mapping

import msgspec

from jobset_gate.barrier import wire
from jobset_gate.barrier.model import GangSnapshot, PendingCause, PendingReason, PodSeen
from jobset_gate.barrier.pending_reason import MAX_MESSAGE
from jobset_gate.objects import terminal_text

MAX_NAME = 253
"""Characters of the name of an object; an Event may claim any."""

MAX_EVENTS = 500
"""Events of one reason that are looked at."""

FAILED_CREATE = "FailedCreate"
"""Of a Job: a quota or an admission refused one of its pods."""
NODE_PROVISIONING_REASONS = ("TriggeredScaleUp", "Nominated")
"""What the cluster autoscaler and Karpenter say of a pod for which they make a node."""
KUBELET_REASONS = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox")
"""What a kubelet says of a pod before it reports a container of it."""


class InvolvedObject(wire.WireStruct, frozen=True):
    """What an Event is about."""

    kind: str = ""
    name: str = ""
    uid: str = ""


class CoreEvent(wire.WireStruct, frozen=True):
    """A core/v1 Event."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    involved_object: InvolvedObject = InvolvedObject()
    type: str = ""
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None
    first_timestamp: str | None = None
    count: int | None = None
    reporting_component: str = ""

    @property
    def last_seen(self) -> str:
        """When it was last seen, as the API has it; "" if nobody said."""
        return self.last_timestamp or self.event_time or self.first_timestamp or ""


class CoreEventList(wire.WireStruct, frozen=True):
    """One page of them."""

    items: tuple[CoreEvent, ...] = ()


def denials_by_job(refused: Iterable[CoreEvent]) -> dict[str, str]:
    """By Job: in which words the last of its pods was refused."""
    return {
        it.involved_object.name[:MAX_NAME]: _words(it.message) for it in sorted(refused, key=lambda it: it.last_seen)
    }


def with_events(
    seen: GangSnapshot, refused: Iterable[CoreEvent], coming: Iterable[CoreEvent], troubles: Iterable[CoreEvent]
) -> GangSnapshot:
    """What these Events add to what was seen."""
    jobs = {job.name for job in seen.jobs}
    unscheduled = {pod.name for pod in seen.pods if not pod.bound}
    denials = {job: words for job, words in denials_by_job(refused).items() if job in jobs}
    provisioning = {it.involved_object.name for it in coming if it.involved_object.name in unscheduled}
    words = {it.involved_object.uid: it for it in sorted(troubles, key=lambda it: it.last_seen)}
    return msgspec.structs.replace(
        seen,
        denials=tuple(sorted(denials.items())),
        provisioning=frozenset(provisioning),
        pods=tuple(_with_kubelet_event(pod, words) for pod in seen.pods) if words else seen.pods,
    )


def _with_kubelet_event(pod: PodSeen, words: Mapping[str, CoreEvent]) -> PodSeen:
    """A pod of which its kubelet reports no container, with what it has said of it otherwise."""
    event = words.get(pod.uid)
    if event is None or pod.pending is None or pod.pending.reason is not PendingReason.STARTING:
        return pod
    stall = PendingCause(reason=PendingReason.STARTING, message=_words(f"{event.reason}: {event.message}"))
    return msgspec.structs.replace(pod, pending=stall)


def _words(message: str) -> str:
    return terminal_text.line(message)[:MAX_MESSAGE]
