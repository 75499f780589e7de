"""When images were there, as Events of the kubelets tell it for as long as they live: an hour, usually."""

from collections.abc import Collection
from datetime import datetime

from jobset_gate.barrier import wire
from jobset_gate.cli.fetch.lists import PAGE
from jobset_gate.cli.fetch.permissions import Permissions
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import EVENTS
from jobset_gate.runtime.decoder import ObjectDecoder, PartialObjectMetadata
from jobset_gate.runtime.paging import ListScope, list_pages

MOST = 50_000
"""Events that are looked at: those of other pods in the namespace are among them, and cannot be left out."""

_CONTAINER = ("spec.initContainers{", "spec.containers{")


class ContainerReference(wire.WireStruct, frozen=True):
    """The container that an Event is about."""

    uid: str = ""
    field_path: str = ""

    @property
    def container(self) -> str:
        """Its name; "" for an Event about something else."""
        for start in _CONTAINER:
            if self.field_path.startswith(start):
                return self.field_path.removeprefix(start).removesuffix("}")
        return ""


class PulledEvent(wire.WireStruct, frozen=True):
    """A core/v1 Event of that reason."""

    metadata: wire.ObjectMeta
    involved_object: ContainerReference = ContainerReference()
    first_timestamp: datetime | None = None
    event_time: datetime | None = None

    @property
    def at(self) -> float | None:
        """When it was first seen: later ones are those of containers that were started again."""
        moment = self.first_timestamp or self.event_time
        return None if moment is None else moment.timestamp()


async def fetch_image_pulls(
    client: Client, namespace: str, pods: Collection[str], rights: Permissions
) -> dict[str, dict[str, float]]:
    """By UID of a pod, then by container. What may not be read is said in `rights`."""
    reader = ObjectDecoder(PulledEvent, lambda _, detail: rights.missing.append(f"not readable: {detail}"))
    found: dict[str, dict[str, float]] = {}
    seen = 0
    scope = ListScope(EVENTS, namespace, "", "involvedObject.kind=Pod,reason=Pulled")
    try:
        async for items, _ in list_pages(client, scope, PAGE):
            for raw in items:
                event = reader.decode_object(raw)
                if (
                    event is not None
                    and not isinstance(event, PartialObjectMetadata)
                    and event.involved_object.uid in pods
                ):
                    _note(found.setdefault(event.involved_object.uid, {}), event)
            seen += len(items)
            if seen >= MOST:
                rights.missing.append(f"only the first {seen} Events were read: more pulls may be known than are shown")
                break
    except Forbidden:
        rights.add_missing("list", EVENTS, namespace, "when images were pulled is not known")
    return found


def _note(known: dict[str, float], event: PulledEvent) -> None:
    container, at = event.involved_object.container, event.at
    if container and at is not None:
        known[container] = min(at, known.get(container, at))
