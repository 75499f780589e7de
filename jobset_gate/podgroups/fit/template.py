"""What of a pod's template decides about its place, worked out once for all pods of a template (G3).

Tenants make up templates as they like: what is looked into, and what is kept, has a bound.
"""

from hashlib import sha256
from typing import Final

import msgspec

from jobset_gate.objects.bounded_cache import BoundedCache
from jobset_gate.podgroups import wire
from jobset_gate.podgroups.fit import constraints
from jobset_gate.podgroups.fit.constraints import AntiAffinityTerm
from jobset_gate.podgroups.fit.guaranteed import PodShape

PlacementFacts = tuple[PodShape, tuple[str, ...], tuple[AntiAffinityTerm, ...]]
"""Of one pod; what of its template is not reckoned with, in words; and whom it keeps away from where it runs."""

_KINDS_BYTES: Final = 16 * 1024 * 1024
"""For the facts of kinds of pods; the pods of a Job or of a gang are one kind. Some 4,000 ordinary ones."""

_MOST_BYTES: Final = 32 * 1024
"""Of a template, as JSON. A longer one is not modelled: only its first containers are looked at."""

_ENTRY_BYTES: Final = 1024
"""What an entry costs besides what is in it; a template up to this length is its own key."""

_CONTAINER_BYTES: Final = 64
"""What a container counts for that says nothing."""

_LARGE: Final = f"a pod template of more than {_MOST_BYTES // 1024} KiB"
_WIDE: Final = (
    f"a pod template with more than {constraints.MAX_REQUIREMENTS} expressions about nodes "
    f"or {constraints.MAX_TOLERATIONS} tolerations"
)

_known: Final = BoundedCache[tuple[bytes, bool], PlacementFacts](_KINDS_BYTES)


def placement_facts(spec: wire.GroupPodSpec) -> PlacementFacts:
    """What decides about the pod's place; the same objects for pods of one template."""
    template = msgspec.json.encode(_whole(spec))
    large = len(template) > _MOST_BYTES
    if large:
        template = msgspec.json.encode(_truncated(spec))
    key = (template if len(template) <= _ENTRY_BYTES else sha256(template).digest()), large
    known = _known.get(key)
    if known is None:
        # Decoded, short values take up to eight times as much.
        known = _known.put(key, _decode_facts(template, large=large), _ENTRY_BYTES + 8 * len(template))
    return known


def _decode_facts(template: bytes, *, large: bool) -> PlacementFacts:
    spec = msgspec.json.decode(template)
    shape = PodShape(selection=constraints.pod_node_selection(spec), requests=constraints.pod_requests(spec), count=1)
    beyond = [_LARGE] if large else [_WIDE] if constraints.exceeds_limits(spec) else []
    return shape, (*beyond, *constraints.unsupported_constraints(spec)), constraints.anti_affinity_terms(spec)


def _whole(spec: wire.GroupPodSpec) -> wire.PlacementTemplate:
    return wire.PlacementTemplate(
        containers=spec.containers,
        init_containers=spec.init_containers,
        volumes=spec.volumes,
        resources=spec.resources,
        overhead=spec.overhead,
        node_selector=spec.node_selector,
        affinity=spec.affinity,
        tolerations=spec.tolerations,
        topology_spread_constraints=spec.topology_spread_constraints,
        resource_claims=spec.resource_claims,
    )


def _truncated(spec: wire.GroupPodSpec) -> wire.PlacementTemplate:
    """Without what is said of nodes, and with the first containers: what a pod takes up is still to be deducted."""
    return wire.PlacementTemplate(
        containers=_first(spec.containers),
        init_containers=_first(spec.init_containers),
        resources=spec.resources if _size(spec.resources) <= _ENTRY_BYTES else msgspec.UNSET,
        overhead=spec.overhead if _size(spec.overhead) <= _ENTRY_BYTES else msgspec.UNSET,
    )


def _first(containers: tuple[wire.ContainerResources, ...] | None) -> tuple[wire.ContainerResources, ...]:
    found: list[wire.ContainerResources] = []
    size = 0
    for it in containers or ():
        size += _CONTAINER_BYTES + _size(it.resources) + _size(it.ports)
        if size > _MOST_BYTES // 2:
            break
        found.append(it)
    return tuple(found)


def _size(said: msgspec.Raw | msgspec.UnsetType) -> int:
    return 0 if isinstance(said, msgspec.UnsetType) else len(memoryview(said))
