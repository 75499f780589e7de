"""Whether a controller runs: by its Lease, and by its Deployment where no Lease shows it.

Three answers: it runs (the Lease is renewed, or it works without one), it does not (the Lease is old or missing, and
would be seen), or that is not known: a right is missing, or what is seen does not tell.
"""

import time
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
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


class LeaderElectionFlag(StrEnum):
    """What the command line of a Deployment says about leader election."""

    ON = "--leader-elect"
    OFF = "--no-leader-elect"
    UNSAID = ""


@dataclass(frozen=True, slots=True)
class FoundLeases:
    """`hidden`: there may be more that cannot be seen; `refused`: none could be looked for."""

    found: tuple[Json, ...] = ()
    hidden: bool = False
    refused: bool = False


async def controller_status(client: Client, *namespaces: str, without: str = NO_VERDICTS) -> ControllerStatus:
    """Of the cluster; where Leases may not be listed, of the default namespace and of these.

    `without`: what does not happen while no controller runs.
    """
    places = (DEFAULT_NAMESPACE, *namespaces)
    leases = await _find_leases(client, places)
    held = _newest_held(leases)
    if held is not None and overdue(held) <= CLOCK_MARGIN:
        return ControllerStatus(
            leads=True, message=f"a controller runs: {_holder(held)} holds the Lease {_place(held)}"
        )
    return await _by_deployment(client, places, leases) or _by_lease(leases, without)


async def pod_webhooks(client: Client) -> list[str]:
    """Configurations by which pods of groups are held, as far as they may be listed."""
    try:
        listed = await client.list(MUTATING_WEBHOOKS)
    except Forbidden:
        return []
    found = (nested(it, "metadata", "name") for it in as_list(listed.get("items")))
    return sorted(it for it in found if isinstance(it, str) and it.startswith(names.POD_WEBHOOK))


# --- Leases ----------------------------------------------------------------------------------------------------------


async def _find_leases(client: Client, namespaces: tuple[str, ...]) -> FoundLeases:
    """Of the whole cluster; where that is forbidden, of these namespaces one after the other."""
    try:
        listed = await client.list(LEASES, field_selector=f"metadata.name={names.LEASE}")
    except Forbidden:
        pass
    else:
        return FoundLeases(tuple(as_list(listed.get("items"))))
    found: list[Json] = []
    refused, places = 0, dict.fromkeys(it for it in namespaces if it)
    for namespace in places:
        try:
            found.append(await client.get(LEASES, names.LEASE, namespace))
        except NotFound:
            continue
        except Forbidden:
            refused += 1
    return FoundLeases(tuple(found), hidden=True, refused=refused == len(places))


def overdue(lease: Json) -> float:
    """Seconds since the Lease expired; below zero while it has not."""
    renewed, duration = nested(lease, "spec", "renewTime"), nested(lease, "spec", "leaseDurationSeconds")
    if not isinstance(renewed, str) or not isinstance(duration, int):
        return float("inf")
    return time.time() - datetime.fromisoformat(renewed).timestamp() - duration


def _newest_held(leases: FoundLeases) -> Json | None:
    return min((it for it in leases.found if _holder(it)), key=overdue, default=None)


def _holder(lease: Json) -> str:
    return str(nested(lease, "spec", "holderIdentity") or "")


def _place(obj: Json) -> str:
    return f"{nested(obj, 'metadata', 'namespace')}/{nested(obj, 'metadata', 'name')}"


def _by_lease(leases: FoundLeases, without: str) -> ControllerStatus:
    held = _newest_held(leases)
    if held is not None:
        who = f"{_holder(held)} holds the Lease {_place(held)}, which ran out {overdue(held):.0f}s ago"
    elif leases.found:
        who = f"nobody holds the Lease {_place(leases.found[0])}"
    elif leases.refused:
        return _unknown(f"no right to read the Lease {names.LEASE}")
    elif leases.hidden:
        return _unknown(f"no Lease {names.LEASE} was found, and no right to look for it in all namespaces")
    else:
        who = f"there is no Lease {names.LEASE}"
    return ControllerStatus(leads=False, message=f"no controller runs: {who}; {without}")


def _runs(why: str) -> ControllerStatus:
    return ControllerStatus(leads=True, message=f"a controller runs: {why}")


def _unknown(why: str) -> ControllerStatus:
    return ControllerStatus(leads=None, message=f"whether a controller runs is not known: {why}")


# --- Deployments -----------------------------------------------------------------------------------------------------


async def _by_deployment(client: Client, places: tuple[str, ...], leases: FoundLeases) -> ControllerStatus | None:
    """What a Deployment with ready pods says against the Leases; None if there is none, or it needs a Lease."""
    flags = {leader_election_flag(it): it for it in await _available_deployments(client, places)}
    if one := flags.get(LeaderElectionFlag.OFF):
        return _runs(f"Deployment {_place(one)}, without leader election")
    unseen = leases.hidden and not leases.found
    one = flags.get(LeaderElectionFlag.UNSAID) or (flags.get(LeaderElectionFlag.ON) if unseen else None)
    if one is None:
        return None
    if leases.refused:
        lacking = f"there is no right to read the Lease {names.LEASE}"
    else:
        lacking = f"its Lease {names.LEASE} " + ("is not renewed" if leases.found else "was not found")
    return _unknown(f"Deployment {_place(one)} is available, but {lacking}")


async def _available_deployments(client: Client, namespaces: tuple[str, ...]) -> list[Json]:
    """Those with ready pods, as far as they may be listed."""
    try:
        found = await _deployments(client, None)
    except Forbidden:
        found = []
        for namespace in dict.fromkeys(it for it in namespaces if it):
            try:
                found += await _deployments(client, namespace)
            except Forbidden:
                continue
    return [it for it in found if as_int(nested(it, "status", "availableReplicas"), 0) > 0]


async def _deployments(client: Client, namespace: str | None) -> list[Json]:
    try:
        return as_list((await client.list(DEPLOYMENTS, namespace, label_selector=LABELS)).get("items"))
    except NotFound:
        return []


def leader_election_flag(deployment: Json) -> LeaderElectionFlag:
    """The last flag counts, as it does for the program."""
    containers = as_list(nested(deployment, "spec", "template", "spec", "containers"))
    words = [str(word) for one in containers for part in ("command", "args") for word in as_list(nested(one, part))]
    given = [it for word in words for it in (LeaderElectionFlag.ON, LeaderElectionFlag.OFF) if word == it]
    return given[-1] if given else LeaderElectionFlag.UNSAID
