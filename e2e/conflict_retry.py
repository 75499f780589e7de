"""Changes to what others change, too: read, changed, and written again as long as somebody else was quicker."""

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
    """As controllers do it; `change` is made anew in each version that is met."""
    while True:
        thing = await client.get(resource, name, namespace)
        change(thing)
        with suppress(Conflict):
            return await client.replace(resource, thing)
