"""Changes to objects that other clients change, too: read, changed, written, and again after a conflict."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Conflict
from jobset_gate.kube.resources import Resource

Json = dict[str, Any]


async def retry_on_conflict(
    client: Client, resource: Resource, name: str, namespace: str, change: Callable[[Json], None]
) -> Json:
    """As controllers do it; `change` is applied to each version that is read."""
    while True:
        thing = await client.get(resource, name, namespace)
        change(thing)
        with suppress(Conflict):
            return await client.replace(resource, thing)
