"""What a pod occupies on a node, of every resource, as the scheduler reckons it (G3, Fit)."""

from collections.abc import Mapping
from math import ceil
from typing import Any, Final

from jobset_gate.objects import devices, quantity
from jobset_gate.objects.unstructured import Json, as_list, as_map, nested

Amounts = Mapping[str, int]
"""By resource, in thousandths: `500m` is 500, one GPU 1000. Integers, since thousands of nodes are gone through."""

PODS: Final = "pods"
_OVERRIDABLE: Final = ("cpu", "memory")
"""What a request for the whole pod replaces; hugepages too."""


def pod_requests(spec: Json) -> dict[str, int]:
    """Main containers and sidecars together or the largest init step, then overhead, and one of the node's pods."""
    mains = [_container_requests(as_map(it)) for it in as_list(spec.get("containers"))]
    inits = [
        (_container_requests(as_map(it)), nested(it, "restartPolicy") == "Always")
        for it in as_list(spec.get("initContainers"))
    ]
    found = dict(devices.pod_devices(mains, inits))
    whole = _container_requests(spec)
    found |= {name: many for name, many in whole.items() if name in _OVERRIDABLE or name.startswith("hugepages-")}
    for name, many in parse_amounts(nested(spec, "overhead")).items():
        found[name] = found.get(name, 0) + many
    return found | {PODS: 1000}


def parse_amounts(values: Any) -> dict[str, int]:
    """A list of resources in thousandths, rounded up; what is no amount counts as none."""
    read = ((name, quantity.amount(value)) for name, value in as_map(values).items())
    return {name: ceil(amount * 1000) for name, amount in read if amount is not None}


def subtract(free: Amounts, taken: Amounts) -> dict[str, int]:
    """What is left of `free`; below zero where more is taken than there is."""
    return {name: many - taken.get(name, 0) for name, many in free.items()}


def _container_requests(holder: Json) -> dict[str, int]:
    """Requests; a limit stands for one that is not given, as the API server's defaults have it."""
    resources = holder.get("resources")
    return parse_amounts(nested(resources, "limits")) | parse_amounts(nested(resources, "requests"))
