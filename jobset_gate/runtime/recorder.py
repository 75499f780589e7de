"""Writes core/v1 Events, each fact once."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import AlreadyExists, NotFound
from jobset_gate.kube.resources import EVENTS
from jobset_gate.objects import terminal_text

LONGEST_MESSAGE = 1024  # characters, the API's limit


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """The object that an Event is about; `namespace` is "" for what has none."""

    api_version: str
    kind: str
    name: str
    namespace: str
    uid: str


class EventRecorder:
    """`component` is the reporting controller, `clock` Unix time in seconds."""

    def __init__(self, client: Client, component: str, clock: Callable[[], float] = time.time) -> None:
        self._client, self._component, self._clock = client, component, clock

    async def record(
        self,
        regarding: ObjectReference,
        reason: str,
        message: str,
        *,
        fact: str,
        warning: bool = False,
        dry_run: bool = False,
    ) -> bool:
        """True if the Event was written; False if this `fact` has one already, or the namespace is gone.

        The Event's name is made from the fact, so that the API server refuses a second one, also after a crash or from
        another replica. Raises what Client.create raises.
        """
        date = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        namespace = regarding.namespace or "default"
        message = terminal_text.line(message)
        body = {
            "metadata": {
                "name": f"{regarding.name[:200]}.{hashlib.sha256(fact.encode()).hexdigest()[:16]}",
                "namespace": namespace,
            },
            "involvedObject": {
                "apiVersion": regarding.api_version,
                "kind": regarding.kind,
                "name": regarding.name,
                "namespace": regarding.namespace,
                "uid": regarding.uid,
            },
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 3] + "...",
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._component,
            "firstTimestamp": date,
            "lastTimestamp": date,
            "count": 1,
        }
        try:
            await self._client.create(EVENTS, body, namespace, dry_run=dry_run)
        except (AlreadyExists, NotFound):
            return False
        return True
