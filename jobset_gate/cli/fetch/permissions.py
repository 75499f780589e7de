"""The rights that the caller lacks: collected as sentences, so that the rest can still be printed."""

from dataclasses import dataclass, field

from jobset_gate.kube.resources import Resource


@dataclass(slots=True)
class Permissions:
    """`missing` has one sentence for each right that was refused, and for each object that could not be decoded."""

    missing: list[str] = field(default_factory=list)
    hidden_kinds: set[str] = field(default_factory=set)
    """Kinds of gangs that may not be listed at all, as messages name them."""

    def add_missing(self, verb: str, resource: Resource, namespace: str | None, unknown: str) -> None:
        """`cannot list events in namespace x: what the quota said is not known`."""
        self.add_sentence(f"{forbidden_text(verb, resource, namespace)}: {unknown}")

    def add_sentence(self, sentence: str) -> None:
        """Each once."""
        if sentence not in self.missing:
            self.missing.append(sentence)


def forbidden_text(verb: str, resource: Resource, namespace: str | None) -> str:
    """`cannot list pods in namespace x`."""
    kind = resource_name(resource)
    if not resource.namespaced:
        return f"cannot {verb} {kind}"
    return f"cannot {verb} {kind} " + (f"in namespace {namespace}" if namespace else "in all namespaces")


def resource_name(resource: Resource) -> str:
    """As RBAC rules and kubectl name it: `podgroups.scheduling.x-k8s.io`."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural
