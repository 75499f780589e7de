"""What Events say of a gang: what a quota refused, which nodes are on their way, what a kubelet cannot do (A9).

The same for a controller before its verdict and for a person who asks why.
"""

from collections.abc import Iterable, Mapping

import msgspec

from jobset_gate import terminal_text, wire
from jobset_gate.model import GangSeen, PodSeen, Stall, Why
from jobset_gate.stalls import DETAIL_LIMIT

LONGEST_NAME = 253
"""Characters of the name of an object; an Event may claim any."""

MOST_EVENTS = 500
"""Events of one reason that are looked at."""

REFUSED = "FailedCreate"
"""Of a Job: a quota or an admission refused one of its pods."""
COMING = ("TriggeredScaleUp", "Nominated")
"""What the cluster autoscaler and Karpenter say of a pod for which they make a node."""
KUBELETS = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox")
"""What a kubelet says of a pod before it reports a container of it."""


class Regarding(wire.Shape, frozen=True):
    """What an Event is about."""

    kind: str = ""
    name: str = ""
    uid: str = ""


class Event(wire.Shape, frozen=True):
    """A core/v1 Event."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    involved_object: Regarding = Regarding()
    type: str = ""
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None
    first_timestamp: str | None = None
    count: int | None = None
    reporting_component: str = ""

    @property
    def at(self) -> str:
        """When it was last seen, as the API has it; "" if nobody said."""
        return self.last_timestamp or self.event_time or self.first_timestamp or ""


class Events(wire.Shape, frozen=True):
    """One page of them."""

    items: tuple[Event, ...] = ()


def refusals(refused: Iterable[Event]) -> dict[str, str]:
    """By Job: in which words the last of its pods was refused."""
    return {it.involved_object.name[:LONGEST_NAME]: _words(it.message) for it in sorted(refused, key=lambda it: it.at)}


def told(seen: GangSeen, refused: Iterable[Event], coming: Iterable[Event], troubles: Iterable[Event]) -> GangSeen:
    """What these Events add to what was seen."""
    jobs = {job.name for job in seen.jobs}
    unscheduled = {pod.name for pod in seen.pods if not pod.bound}
    denials = {job: words for job, words in refusals(refused).items() if job in jobs}
    provisioning = {it.involved_object.name for it in coming if it.involved_object.name in unscheduled}
    words = {it.involved_object.uid: it for it in sorted(troubles, key=lambda it: it.at)}
    return msgspec.structs.replace(
        seen,
        denials=tuple(sorted(denials.items())),
        provisioning=frozenset(provisioning),
        pods=tuple(_with_words(pod, words) for pod in seen.pods) if words else seen.pods,
    )


def _with_words(pod: PodSeen, words: Mapping[str, Event]) -> PodSeen:
    """A pod of which its kubelet reports no container, with what it has said of it otherwise."""
    event = words.get(pod.uid)
    if event is None or pod.stall is None or pod.stall.why is not Why.STARTING:
        return pod
    stall = Stall(why=Why.STARTING, detail=_words(f"{event.reason}: {event.message}"))
    return msgspec.structs.replace(pod, stall=stall)


def _words(message: str) -> str:
    return terminal_text.line(message)[:DETAIL_LIMIT]
