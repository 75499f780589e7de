"""One object by its name, for a person: what is not there, or may not be read, is said in a sentence."""

from typing import Final, TypeVar

from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.permissions import forbidden_text
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, PODS, Resource

_WORDS: Final = {JOBSETS: "JobSet", PODS: "pod"}

T = TypeVar("T")


class ObjectNotFound(CommandError):
    """There is nothing of that name."""


async def get_object(client: Client, resource: Resource, namespace: str, name: str, shape: type[T]) -> T:
    """A JobSet or a pod, decoded as that. Raises Absent, and Failed where it may not be read."""
    try:
        return await client.get(resource, name, namespace, type=shape)
    except NotFound as gone:
        raise ObjectNotFound(f"{_WORDS[resource]} {name} not found in namespace {namespace}") from gone
    except Forbidden as no:
        raise CommandError(f"{forbidden_text('get', resource, namespace)} ({no.message})") from no


async def get_config_map(client: Client, namespace: str, gang: str) -> wire.ConfigMap | None:
    """The ConfigMap that has the name of a gang's; None if there is none. It may be somebody else's."""
    try:
        return await client.get(CONFIGMAPS, names.config_map_name(gang), namespace, type=wire.ConfigMap)
    except NotFound:
        return None
