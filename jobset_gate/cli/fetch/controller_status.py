"""Whether a controller runs: by its Lease, and by its Deployment where that needs none.

Three answers: it runs (the Lease is renewed, or it works without one), it does not (the Lease is old or missing, and
would be seen), or that is not known: a right is missing, or what is seen does not tell.
"""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from jobset_gate import names
from jobset_gate.explain.model import ControllerStatus
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import DEPLOYMENTS, LEASES, MUTATING_WEBHOOKS
from jobset_gate.objects.unstructured import Json, as_int, as_list, nested

CLOCK_MARGIN: Final = 5.0
"""Seconds by which clocks may differ before a Lease counts as expired."""
DEFAULT_NAMESPACE: Final = "jobset-gate-system"
LABELS: Final = f"app.kubernetes.io/name={names.PROGRAM},app.kubernetes.io/component=controller"
"""Of the controller's Deployment, as the chart sets them."""
NO_VERDICTS: Final = "nobody opens a gate or times a gang out"
NO_GROUPS: Final = "nobody opens groups"


async def controller_status(client: Client, *namespaces: str, without: str = NO_VERDICTS) -> ControllerStatus:
    """Of the cluster; where Leases may not be listed, of the default namespace and of these.

    `without`: what does not happen while no controller runs.
    """
    places = [*dict.fromkeys(it for it in (DEFAULT_NAMESPACE, *namespaces) if it)]
    leases, unseen = await _find_leases(client, places)
    held = min(filter(_holder, leases), key=_overdue, default=None)
    if held is not None and _overdue(held) <= CLOCK_MARGIN:
        return _runs(f"{_holder(held)} holds the Lease {place(held)}")
    if one := await _without_election(client, places):
        return _runs(f"Deployment {place(one)}, without leader election")
    if unseen and not leases:
        return ControllerStatus(leads=None, message=f"whether a controller runs is not known: {unseen}")
    return _by_lease(leases, held, without)


async def pod_webhooks(client: Client) -> list[str]:
    """Configurations by which pods of groups are held, as far as they may be listed."""
    try:
        listed = await client.list(MUTATING_WEBHOOKS)
    except Forbidden:
        return []
    found = (nested(it, "metadata", "name") for it in as_list(listed.get("items")))
    return sorted(it for it in found if isinstance(it, str) and it.startswith(names.POD_WEBHOOK))


def _runs(why: str) -> ControllerStatus:
    return ControllerStatus(leads=True, message=f"a controller runs: {why}")


def place(obj: Json) -> str:
    """`namespace/name`."""
    return f"{nested(obj, 'metadata', 'namespace')}/{nested(obj, 'metadata', 'name')}"


# --- Leases ----------------------------------------------------------------------------------------------------------


async def _find_leases(client: Client, namespaces: Sequence[str]) -> tuple[list[Json], str]:
    """Of the whole cluster; where that is forbidden, of these namespaces one after the other.

    With why there may be more; "" if there are not.
    """
    try:
        listed = await client.list(LEASES, field_selector=f"metadata.name={names.LEASE}")
        return as_list(listed.get("items")), ""
    except Forbidden:
        found, refused = list[Json](), 0
    for namespace in namespaces:
        try:
            found.append(await client.get(LEASES, names.LEASE, namespace))
        except NotFound:
            continue
        except Forbidden:
            refused += 1
    if refused == len(namespaces):
        return found, f"no right to read the Lease {names.LEASE}"
    return found, f"no Lease {names.LEASE} was found, and no right to look for it in all namespaces"


def _overdue(lease: Json) -> float:
    """Seconds since the Lease expired; below zero while it has not."""
    renewed, duration = nested(lease, "spec", "renewTime"), nested(lease, "spec", "leaseDurationSeconds")
    if not isinstance(renewed, str) or not isinstance(duration, int):
        return float("inf")
    return time.time() - datetime.fromisoformat(renewed).timestamp() - duration


def _holder(lease: Json) -> str:
    return str(nested(lease, "spec", "holderIdentity") or "")


def _by_lease(leases: Sequence[Json], held: Json | None, without: str) -> ControllerStatus:
    if held is not None:
        who = f"{_holder(held)} holds the Lease {place(held)}, which ran out {_overdue(held):.0f}s ago"
    elif leases:
        who = f"nobody holds the Lease {place(leases[0])}"
    else:
        who = f"there is no Lease {names.LEASE}"
    return ControllerStatus(leads=False, message=f"no controller runs: {who}; {without}")


# --- Deployments -----------------------------------------------------------------------------------------------------


async def _without_election(client: Client, namespaces: Sequence[str]) -> Json | None:
    """A Deployment with ready pods that need no Lease: of the whole cluster, or else of these namespaces."""
    for namespace in (None, *namespaces):
        try:
            listed = await client.list(DEPLOYMENTS, namespace, label_selector=LABELS)
        except (Forbidden, NotFound):
            continue
        found = filter(_elects_nobody, as_list(listed.get("items")))
        one = next((it for it in found if as_int(nested(it, "status", "availableReplicas"), 0) > 0), None)
        if one is not None or namespace is None:
            return one
    return None


def _elects_nobody(deployment: Json) -> bool:
    containers = as_list(nested(deployment, "spec", "template", "spec", "containers"))
    return any("--no-leader-elect" in as_list(nested(one, "args")) for one in containers)
