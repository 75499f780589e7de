"""Placement facts of a pod template, parsed once for all its pods; bounded, since tenants write templates (G3)."""

from typing import Final

import msgspec

from jobset_gate.objects.caches import BoundedCache
from jobset_gate.podgroups import wire
from jobset_gate.podgroups.fit import constraints
from jobset_gate.podgroups.fit.constraints import AntiAffinityTerm
from jobset_gate.podgroups.fit.guaranteed import PodShape

PlacementFacts = tuple[PodShape, tuple[str, ...], tuple[AntiAffinityTerm, ...]]
"""Shape of one pod; unsupported constraints; and the pods that it repels."""

_KINDS_BYTES: Final = 16 * 1024 * 1024
"""Of facts: about 4,000 ordinary templates."""

_MOST_BYTES: Final = 32 * 1024
"""Of a template as JSON. Of a longer one only the first containers count."""

_ENTRY_BYTES: Final = 1024
"""Of an entry without its content."""

_CONTAINER_BYTES: Final = 64
"""Of an empty container."""

_LARGE: Final = f"a pod template of more than {_MOST_BYTES // 1024} KiB"
_WIDE: Final = (
    f"a pod template with more than {constraints.MAX_REQUIREMENTS} expressions about nodes "
    f"or {constraints.MAX_TOLERATIONS} tolerations"
)

_PLACEMENT_FIELDS: Final = wire.PlacementTemplate.__struct_fields__

_known: Final = BoundedCache[tuple[bytes, bool], PlacementFacts](_KINDS_BYTES)


def placement_facts(spec: wire.GroupPodSpec) -> PlacementFacts:
    """The facts of a pod; the same objects for pods of one template."""
    template = msgspec.json.encode(wire.PlacementTemplate(**{it: getattr(spec, it) for it in _PLACEMENT_FIELDS}))
    large = len(template) > _MOST_BYTES
    if large:
        template = msgspec.json.encode(_truncated(spec))
    known = _known.get((template, large))
    if known is None:
        # Decoded, short values need up to eight times as much memory; the template itself is the key.
        facts = _decode_facts(template, large=large)
        known = _known.put((template, large), facts, _ENTRY_BYTES + 9 * len(template))
    return known


def _decode_facts(template: bytes, *, large: bool) -> PlacementFacts:
    spec = msgspec.json.decode(template)
    shape = PodShape(selection=constraints.pod_node_selection(spec), requests=constraints.pod_requests(spec), count=1)
    beyond = [_LARGE] if large else [_WIDE] if constraints.exceeds_limits(spec) else []
    return shape, (*beyond, *constraints.unsupported_constraints(spec)), constraints.anti_affinity_terms(spec)


def _truncated(spec: wire.GroupPodSpec) -> wire.PlacementTemplate:
    """The first containers, without node selection: the resources that a bound pod uses still count."""
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
