"""The Event by which everybody sees who has opened a gate by hand. Tried before anything is changed, written after."""

import uuid
from datetime import UTC, datetime
from typing import Any

from jobset_gate import names
from jobset_gate.barrier.model import JobSetSeen
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.permissions import forbidden_text
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import EVENTS, JOBSETS

MAX_MESSAGE_LENGTH = 1024
"""Characters of an Event's message, the API's limit."""


async def check_event_allowed(client: Client, jobset: JobSetSeen) -> None:
    """Raises Failed where an Event may not be written: nobody opens a gate unseen."""
    body = _body(jobset, names.REASON_BYPASSED_BY_USER, "is this allowed?")
    try:
        await client.create(EVENTS, body, jobset.namespace, dry_run=True)
    except Forbidden as no:
        told = f"{forbidden_text('create', EVENTS, jobset.namespace)}: opening a gate by hand is audited by one"
        raise CommandError(f"{told}; nothing was changed ({no.message})") from no


async def write_event(client: Client, jobset: JobSetSeen, reason: str, message: str) -> None:
    """Raises what Client.create raises."""
    await client.create(EVENTS, _body(jobset, reason, message), jobset.namespace)


def _body(jobset: JobSetSeen, reason: str, message: str) -> dict[str, Any]:
    date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "metadata": {"name": f"{jobset.name}.{uuid.uuid4().hex}", "namespace": jobset.namespace},
        "involvedObject": {
            "apiVersion": JOBSETS.api_version,
            "kind": JOBSETS.kind,
            "name": jobset.name,
            "namespace": jobset.namespace,
            "uid": jobset.uid,
        },
        "type": "Warning",
        "reason": reason,
        "message": message if len(message) <= MAX_MESSAGE_LENGTH else message[: MAX_MESSAGE_LENGTH - 3] + "...",
        "source": {"component": names.PROGRAM},
        "reportingComponent": names.PROGRAM,
        "reportingInstance": names.PROGRAM,
        "firstTimestamp": date,
        "lastTimestamp": date,
        "count": 1,
    }
