"""Keeps the JobSet CRD extended with spec.groupSchedulingConfig, without becoming the owner of anything in it (A2)."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from jobset_gate import crd_schema
from jobset_gate.crd_schema import Operation, is_extended
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Conflict, Invalid, KubeError, NotFound
from jobset_gate.kube.resources import CRDS

__all__ = ["NoPlaceForField", "Outcome", "extend", "is_extended", "remove"]

ATTEMPTS = 8  # each fails only if somebody else has written the CRD between our read and our write
Crd = dict[str, Any]


class NoPlaceForField(KubeError):
    """The installed JobSet CRD has no served v1alpha2 with a schema for spec."""


class Outcome(enum.Enum):
    """What the CRD was like."""

    EXTENDED = "extended"  # now, by us
    ALREADY_THERE = "already there"
    NOT_INSTALLED = "not installed"
    REMOVED = "removed"  # now, by us
    NOT_THERE = "not there"


async def extend(client: Client, *, name: str = crd_schema.CRD_NAME) -> Outcome:
    """Adds the field where it is missing: EXTENDED, ALREADY_THERE or NOT_INSTALLED. Safe to call at any time.

    Two patches; a caller that dies between them is healed by the next call. Raises ApiError, NoPlaceForField.
    """
    return await _change(client, name, crd_schema.extension, Outcome.EXTENDED, Outcome.ALREADY_THERE)


async def remove(client: Client, *, name: str = crd_schema.CRD_NAME) -> Outcome:
    """Takes the field out if it is the one that extend() put in: REMOVED, NOT_THERE or NOT_INSTALLED."""
    return await _change(client, name, crd_schema.retraction, Outcome.REMOVED, Outcome.NOT_THERE)


async def _change(
    client: Client, name: str, patch: Callable[[Crd], list[Operation]], done: Outcome, nothing_to_do: Outcome
) -> Outcome:
    outcome = nothing_to_do
    for attempt in range(1, ATTEMPTS + 1):
        try:
            crd = await client.get(CRDS, name)
        except NotFound:
            return Outcome.NOT_INSTALLED
        if not crd_schema.can_be_extended(crd):
            raise NoPlaceForField(f"{name} has no served {crd_schema.VERSION} with a schema for spec")
        try:
            owners = crd_schema.owners(crd) if crd_schema.is_disowned(crd) else crd_schema.disowned(crd)
            if operations := patch(crd):
                crd = await _patch(client, name, operations)
                outcome = done
            if not crd_schema.is_disowned(crd):
                await _patch(client, name, crd_schema.restoration(crd, owners))
        except (Conflict, Invalid) as error:
            if attempt == ATTEMPTS or not _lost_a_race(error):
                raise
            continue
        return outcome
    raise AssertionError("unreachable: the last attempt returns or raises")


def _lost_a_race(error: ApiError) -> bool:
    # A `test` that does not hold is answered with 422 and the library's words; a bad schema is one with causes.
    return isinstance(error, Conflict) or not error.details.get("causes")


async def _patch(client: Client, name: str, operations: list[Operation]) -> Crd:
    return await client.patch(CRDS, name, body=operations, patch=PatchType.JSON, field_manager=crd_schema.MANAGER)
