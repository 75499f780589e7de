"""Whether somebody looks after the groups: a controller that holds its Lease, and the webhook that holds new pods."""

import time
from dataclasses import dataclass
from datetime import datetime

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import LEASES, MUTATING_WEBHOOKS
from jobset_gate.template import Json, dig, items

MARGIN = 5.0
"""Seconds by which clocks may differ before a lease counts as run out."""
USUAL_NAMESPACE = "jobset-gate-system"


@dataclass(frozen=True, slots=True)
class Keeper:
    """A controller, as far as its Lease tells. `leads` None: that may not be read."""

    leads: bool | None
    told: str
    """In words, for people."""


async def controller(client: Client, *namespaces: str) -> Keeper:
    """The controller of the cluster; where leases may not be listed, of the usual namespace and of these."""
    try:
        leases = await _leases(client, (USUAL_NAMESPACE, *namespaces))
    except Forbidden:
        return Keeper(None, f"whether a controller runs is not known: no right to read the Lease {names.LEASE}")
    if not leases:
        return Keeper(False, f"no controller runs: there is no Lease {names.LEASE}; nobody opens groups")
    held = [it for it in leases if dig(it, "spec", "holderIdentity")]
    if not held:
        return Keeper(False, f"no controller runs: nobody holds the Lease {_place(leases[0])}; nobody opens groups")
    newest = min(held, key=_overdue)
    who = f"{dig(newest, 'spec', 'holderIdentity')} holds the Lease {_place(newest)}"
    overdue = _overdue(newest)
    if overdue > MARGIN:
        return Keeper(False, f"no controller runs: {who}, which ran out {overdue:.0f}s ago; nobody opens groups")
    return Keeper(True, f"a controller runs: {who}")


async def webhooks(client: Client) -> list[str]:
    """Configurations by which pods of groups are held, as far as they may be listed."""
    try:
        listed = await client.list(MUTATING_WEBHOOKS)
    except Forbidden:
        return []
    found = (dig(it, "metadata", "name") for it in items(listed.get("items")))
    return sorted(it for it in found if isinstance(it, str) and it.startswith(names.POD_WEBHOOK))


async def _leases(client: Client, namespaces: tuple[str, ...]) -> list[Json]:
    try:
        listed = await client.list(LEASES, field_selector=f"metadata.name={names.LEASE}")
    except Forbidden:
        return await _each(client, namespaces)
    return items(listed.get("items"))


async def _each(client: Client, namespaces: tuple[str, ...]) -> list[Json]:
    """From one namespace after the other; Forbidden only if none may be looked into."""
    found: list[Json] = []
    refused: list[Forbidden] = []
    wanted = tuple(dict.fromkeys(it for it in namespaces if it))
    for namespace in wanted:
        try:
            found.append(await client.get(LEASES, names.LEASE, namespace))
        except NotFound:
            continue
        except Forbidden as error:
            refused.append(error)
    if len(refused) == len(wanted):
        raise refused[0]
    return found


def _overdue(lease: Json) -> float:
    """Seconds since the lease has run out; below zero while it has not."""
    renewed, duration = dig(lease, "spec", "renewTime"), dig(lease, "spec", "leaseDurationSeconds")
    if not isinstance(renewed, str) or not isinstance(duration, int):
        return float("inf")
    return time.time() - datetime.fromisoformat(renewed).timestamp() - duration


def _place(lease: Json) -> str:
    return f"{dig(lease, 'metadata', 'namespace')}/{dig(lease, 'metadata', 'name')}"
