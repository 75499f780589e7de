"""What of a pod's template decides about its place, worked out once for all pods of a template (G3).

Tenants make up templates as they like: what is looked into, and what is kept, has a bound.
"""

from hashlib import sha256
from typing import Final

import msgspec

from jobset_gate.bounded_cache import BoundedCache
from jobset_gate.groups import anti_affinity, requests, selection, unmodelled, wire
from jobset_gate.groups.anti_affinity import Term
from jobset_gate.groups.certainty import Shape

Facts = tuple[Shape, tuple[str, ...], tuple[Term, ...]]
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
    f"a pod template with more than {selection.MOST_EXPRESSIONS} expressions about nodes "
    f"or {selection.MOST_TOLERATIONS} tolerations"
)

_known: Final = BoundedCache[tuple[bytes, bool], Facts](_KINDS_BYTES)


def facts(spec: wire.PodSpec) -> Facts:
    """What decides about the pod's place; the same objects for pods of one template."""
    template = msgspec.json.encode(_whole(spec))
    large = len(template) > _MOST_BYTES
    if large:
        template = msgspec.json.encode(_narrowed(spec))
    key = (template if len(template) <= _ENTRY_BYTES else sha256(template).digest()), large
    known = _known.get(key)
    if known is None:
        # Decoded, short values take up to eight times as much.
        known = _known.keep(key, _worked_out(template, large=large), _ENTRY_BYTES + 8 * len(template))
    return known


def _worked_out(template: bytes, *, large: bool) -> Facts:
    spec = msgspec.json.decode(template)
    shape = Shape(selection=selection.of_pod(spec), requests=requests.of_pod(spec), count=1)
    beyond = [_LARGE] if large else [_WIDE] if selection.is_wide(spec) else []
    return shape, (*beyond, *unmodelled.of_pod(spec)), anti_affinity.of_pod(spec)


def _whole(spec: wire.PodSpec) -> wire.Template:
    return wire.Template(
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


def _narrowed(spec: wire.PodSpec) -> wire.Template:
    """Without what is said of nodes, and with the first containers: what a pod takes up is still to be deducted."""
    return wire.Template(
        containers=_first(spec.containers),
        init_containers=_first(spec.init_containers),
        resources=spec.resources if _size(spec.resources) <= _ENTRY_BYTES else msgspec.UNSET,
        overhead=spec.overhead if _size(spec.overhead) <= _ENTRY_BYTES else msgspec.UNSET,
    )


def _first(containers: tuple[wire.Placed, ...] | None) -> tuple[wire.Placed, ...]:
    found: list[wire.Placed] = []
    size = 0
    for it in containers or ():
        size += _CONTAINER_BYTES + _size(it.resources) + _size(it.ports)
        if size > _MOST_BYTES // 2:
            break
        found.append(it)
    return tuple(found)


def _size(said: msgspec.Raw | msgspec.UnsetType) -> int:
    return 0 if isinstance(said, msgspec.UnsetType) else len(memoryview(said))
