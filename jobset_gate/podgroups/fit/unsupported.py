"""What decides about a pod's place and is not reckoned with: groups with such pods go through Probe (G3)."""

from collections.abc import Callable
from typing import Any, Final

from jobset_gate.objects.unstructured import Json, as_list, nested

_HARD: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_LOCAL_VOLUMES: Final = ("persistentVolumeClaim", "ephemeral")


def _affinity(kind: str) -> Callable[[Json], bool]:
    return lambda spec: bool(nested(spec, "affinity", kind, _HARD))


def _spread(spec: Json) -> bool:
    return any(
        nested(it, "whenUnsatisfiable") != "ScheduleAnyway" for it in as_list(spec.get("topologySpreadConstraints"))
    )


def _volumes(spec: Json) -> bool:
    return any(nested(it, kind) is not None for it in as_list(spec.get("volumes")) for kind in _LOCAL_VOLUMES)


def _ports(spec: Json) -> bool:
    containers = [*as_list(spec.get("containers")), *as_list(spec.get("initContainers"))]
    return any(nested(port, "hostPort") for it in containers for port in as_list(nested(it, "ports")))


_FACTS: Final[tuple[tuple[str, Callable[[Any], bool]], ...]] = (
    ("inter-pod affinity", _affinity("podAffinity")),
    ("inter-pod anti-affinity", _affinity("podAntiAffinity")),
    ("topology spread", _spread),
    ("volumes that bind to nodes", _volumes),
    ("host ports", _ports),
    ("resource claims", lambda spec: bool(spec.get("resourceClaims"))),
)
"""Preemption is not modelled either: no pod asks for it, it is a matter of who else is there (see `opening`)."""


def unsupported_constraints(spec: Json) -> tuple[str, ...]:
    """What of a pod is not reckoned with, in words."""
    return tuple(name for name, holds in _FACTS if holds(spec))
