"""The controller's Lease, as far as whoever asks may look for it."""

import time
from dataclasses import dataclass
from datetime import datetime

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import LEASES
from jobset_gate.objects.unstructured import Json, as_list, nested


@dataclass(frozen=True, slots=True)
class FoundLeases:
    """Those that were found; `hidden`: whether there are more cannot be told."""

    found: tuple[Json, ...] = ()
    hidden: bool = False
    refused: bool = False
    """Not one place may be looked into."""


async def find_leases(client: Client, namespaces: tuple[str, ...]) -> FoundLeases:
    """Of the whole cluster; where that is forbidden, of these namespaces one after the other."""
    try:
        listed = await client.list(LEASES, field_selector=f"metadata.name={names.LEASE}")
    except Forbidden:
        return await _each(client, tuple(dict.fromkeys(it for it in namespaces if it)))
    return FoundLeases(tuple(as_list(listed.get("items"))))


async def _each(client: Client, namespaces: tuple[str, ...]) -> FoundLeases:
    found: list[Json] = []
    refused = 0
    for namespace in namespaces:
        try:
            found.append(await client.get(LEASES, names.LEASE, namespace))
        except NotFound:
            continue
        except Forbidden:
            refused += 1
    return FoundLeases(tuple(found), hidden=True, refused=refused == len(namespaces))


def overdue(lease: Json) -> float:
    """Seconds since the lease has run out; below zero while it has not."""
    renewed, duration = nested(lease, "spec", "renewTime"), nested(lease, "spec", "leaseDurationSeconds")
    if not isinstance(renewed, str) or not isinstance(duration, int):
        return float("inf")
    return time.time() - datetime.fromisoformat(renewed).timestamp() - duration


def holder(lease: Json) -> str:
    """Whoever leads by it; "" for nobody."""
    return str(nested(lease, "spec", "holderIdentity") or "")


def place(lease: Json) -> str:
    """`namespace/name`."""
    return f"{nested(lease, 'metadata', 'namespace')}/{nested(lease, 'metadata', 'name')}"
