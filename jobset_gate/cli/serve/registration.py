"""Writes the webhook configurations by server-side apply, and deletes them.

Apply leaves alone what others own in them: a caBundle that cert-manager filled in, say.
"""

import re
from dataclasses import dataclass
from typing import Any

import structlog

from jobset_gate import names
from jobset_gate.cli.exits import CommandError
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, NotFound
from jobset_gate.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from jobset_gate.objects.unstructured import Json
from jobset_gate.settings import Settings
from webhook import registration

_SERVICE = re.compile(r"([a-z0-9-]+)/([a-z0-9-]+)(?::(\d{1,5}))?")
RESOURCES = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)

log = structlog.get_logger("jobset_gate.cli")


@dataclass(frozen=True, slots=True)
class RegisteredConfiguration:
    """One configuration as it was written."""

    resource: Resource
    name: str
    uid: str


def service(text: str) -> registration.ServiceReference:
    """`namespace/name` or `namespace/name:port`. Raises CommandError."""
    found = _SERVICE.fullmatch(text)
    if found is None:
        raise CommandError(f"--service {text}: expected NAMESPACE/NAME or NAMESPACE/NAME:PORT")
    namespace, name, port = found.groups()
    return registration.ServiceReference(namespace, name, int(port or registration.DEFAULT_SERVICE_PORT))


async def register(client: Client, settings: Settings, **where: Any) -> list[RegisteredConfiguration]:
    """Creates or updates all configurations; `where` is what webhook.registration.configurations() takes.

    Those for pods are there only while groups or start groups are enabled: one that was left behind would have an
    outage refuse pods that nobody holds any more.
    """
    gated = registration.configurations(settings.gangs, **where)
    bodies: list[tuple[Resource, Json]] = list(zip(RESOURCES, gated, strict=True))
    of_pods = (
        (settings.gangs.gates_pods, registration.barrier_pod_configuration(settings.gangs, **where)),
        (settings.groups.enabled, registration.pod_configuration(settings.groups, **where)),
    )
    for enabled, body in of_pods:
        if enabled:
            bodies.append((MUTATING_WEBHOOKS, body))
        else:
            await _withdraw(client, MUTATING_WEBHOOKS, body["metadata"]["name"])
    return [await _applied(client, resource, body) for resource, body in bodies]


async def _applied(client: Client, resource: Resource, body: Json) -> RegisteredConfiguration:
    name, manager = body["metadata"]["name"], f"{names.FIELD_MANAGER}-webhook"
    stored = await client.patch(resource, name, body=body, patch=PatchType.APPLY, field_manager=manager, force=True)
    log.info("registered", kind=resource.kind, name=name)
    return RegisteredConfiguration(resource, name, stored["metadata"]["uid"])


async def _withdraw(client: Client, resource: Resource, name: str) -> None:
    try:
        found = await client.get(resource, name)
    except NotFound:
        return
    await unregister(client, [RegisteredConfiguration(resource, name, found["metadata"]["uid"])])


async def unregister(client: Client, made: list[RegisteredConfiguration]) -> None:
    """Deletes these configurations, if they are still the same; those for pods first."""
    for each in reversed(made):
        try:
            await client.delete(each.resource, each.name, uid=each.uid)
        except (NotFound, Conflict) as gone:
            log.info("not ours to delete any more", kind=each.resource.kind, name=each.name, why=str(gone))
            continue
        log.info("unregistered", kind=each.resource.kind, name=each.name)
