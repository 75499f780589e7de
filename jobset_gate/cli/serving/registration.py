"""Tells an API server about the door, and takes that back: the webhook configurations by server-side apply.

Apply leaves alone what others own in them: a caBundle that cert-manager filled in, say.
"""

import re
from dataclasses import dataclass
from typing import Any

import structlog

from jobset_gate import names
from jobset_gate.cli.exits import Failed
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, NotFound
from jobset_gate.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from webhook import registration

_SERVICE = re.compile(r"([a-z0-9-]+)/([a-z0-9-]+)(?::(\d{1,5}))?")
RESOURCES = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)

log = structlog.get_logger("jobset_gate.cli")


@dataclass(frozen=True, slots=True)
class Registered:
    """One configuration as it was written."""

    resource: Resource
    name: str
    uid: str


def service(text: str) -> registration.Service:
    """`namespace/name` or `namespace/name:port`. Raises Failed."""
    found = _SERVICE.fullmatch(text)
    if found is None:
        raise Failed(f"--service {text}: expected NAMESPACE/NAME or NAMESPACE/NAME:PORT")
    namespace, name, port = found.groups()
    return registration.Service(namespace, name, int(port)) if port else registration.Service(namespace, name)


async def register(client: Client, **where: Any) -> list[Registered]:
    """Creates or updates both configurations; `where` is what webhook.registration.configurations() takes."""
    made = []
    for resource, body in zip(RESOURCES, registration.configurations(**where), strict=True):
        name = body["metadata"]["name"]
        manager = f"{names.FIELD_MANAGER}-webhook"
        stored = await client.patch(resource, name, body=body, patch=PatchType.APPLY, field_manager=manager, force=True)
        made.append(Registered(resource, name, stored["metadata"]["uid"]))
        log.info("registered", kind=resource.kind, name=name)
    return made


async def unregister(client: Client, made: list[Registered]) -> None:
    """Deletes these configurations, if they are still the same."""
    for each in made:
        try:
            await client.delete(each.resource, each.name, uid=each.uid)
        except (NotFound, Conflict) as gone:
            log.info("not ours to delete any more", kind=each.resource.kind, name=each.name, why=str(gone))
            continue
        log.info("unregistered", kind=each.resource.kind, name=each.name)
