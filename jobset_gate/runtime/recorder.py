"""Writes core/v1 Events, each fact once."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import AlreadyExists
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


async def record_event(
    client: Client,
    *,
    regarding: ObjectReference,
    type: Literal["Normal", "Warning"],  # noqa: A002 - the field's name in the API
    reason: str,
    message: str,
    name: str,
    reporting_component: str,
    now: float | None = None,
) -> bool:
    """True if the Event was written, False if one of this `name` has been already (then nothing changes).

    `name` is the fact's own, such as "<jobset>.<uid>.<attempt>.<epoch>.released". `now` is Unix time in seconds,
    this machine's if not given. Raises what Client.create raises.
    """
    date = datetime.fromtimestamp(time.time() if now is None else now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    namespace = regarding.namespace or "default"
    message = terminal_text.line(message)
    body = {
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": regarding.api_version,
            "kind": regarding.kind,
            "name": regarding.name,
            "namespace": regarding.namespace,
            "uid": regarding.uid,
        },
        "type": type,
        "reason": reason,
        "message": message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 3] + "...",
        "source": {"component": reporting_component},
        "reportingComponent": reporting_component,
        "reportingInstance": reporting_component,
        "firstTimestamp": date,
        "lastTimestamp": date,
        "count": 1,
    }
    try:
        await client.create(EVENTS, body, namespace)
    except AlreadyExists:
        return False
    return True
