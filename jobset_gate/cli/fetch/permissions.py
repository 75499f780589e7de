"""What a person may not read: kept, named in a sentence, and survived."""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import Resource

T = TypeVar("T")


@dataclass(slots=True)
class Permissions:
    """The rights that were missing on the way: `missing` has one sentence each."""

    missing: list[str] = field(default_factory=list)
    hidden_kinds: set[str] = field(default_factory=set)
    """Kinds of gangs of which none can be seen, as messages name them."""

    async def read_allowed(
        self, wanted: Awaitable[T], verb: str, resource: Resource, namespace: str | None, lost: str
    ) -> T | None:
        """The answer; None, and `lost` written down, where it is forbidden. Raises everything else."""
        try:
            return await wanted
        except Forbidden:
            self.add_missing(verb, resource, namespace, lost)
            return None

    def add_missing(self, verb: str, resource: Resource, namespace: str | None, lost: str) -> None:
        """`cannot list events in namespace x: what the quota said is not known`."""
        sentence = f"{forbidden_text(verb, resource, namespace)}: {lost}"
        if sentence not in self.missing:
            self.missing.append(sentence)


def forbidden_text(verb: str, resource: Resource, namespace: str | None) -> str:
    """`cannot list pods in namespace x`."""
    kind = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    if not resource.namespaced:
        return f"cannot {verb} {kind}"
    return f"cannot {verb} {kind} " + (f"in namespace {namespace}" if namespace else "in all namespaces")
