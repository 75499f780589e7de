"""Devices: the extended resources that a pod occupies, such as nvidia.com/gpu; they stand idle while it is held.

How many a pod occupies follows from its template, so it is read once per JobSet and costs nothing per pod. Devices
asked for by resource claims (DRA) are named elsewhere and are not among them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from jobset_gate.objects import quantity
from jobset_gate.objects.caches import intern_text

Amounts = Mapping[str, Any]
"""Amounts by resource name, as a container's requests or limits hold them."""

Devices = tuple[tuple[str, int], ...]
"""(resource name, how many), by name."""


def container_devices(requests: Amounts | None, limits: Amounts | None) -> dict[str, int]:
    """The requests of one container. The limit of an extended resource is the default of its request."""
    found = {}
    for name, value in {**(limits or {}), **(requests or {})}.items():
        many = quantity.amount(value) if is_device(name) else None
        if many is not None and many >= 1:
            found[intern_text(name)] = int(many)
    return found


def pod_devices(containers: Iterable[Mapping[str, int]], inits: Iterable[tuple[Mapping[str, int], bool]]) -> Devices:
    """What the scheduler sets aside for a pod: its main containers and sidecars together, or its largest init step.

    Each init container comes with whether it is a sidecar (restartPolicy Always), in the order of the spec.
    """
    running, peak = Counter[str](), Counter[str]()
    for asked, sidecar in inits:
        peak |= running + Counter(asked)  # the larger of both, for each
        if sidecar:
            running.update(asked)
    for asked in containers:
        running.update(asked)
    return tuple(sorted((running | peak).items()))


def is_device(resource: str) -> bool:
    """Whether it is an extended resource: it has a domain, and none of Kubernetes' own."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and not f".{domain}".endswith(".kubernetes.io") and not resource.startswith("requests.")
