"""Asks the API who makes a group's pods: only of groups that have gathered for a while, and not often (G3)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import (
    JOBS,
    JOBSETS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
)
from jobset_gate.podgroups import eviction_owners, owner_capacity
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.owner_capacity import OwnerCapacity
from jobset_gate.podgroups.snapshot import ControllerRef, GroupSnapshot
from jobset_gate.runtime.clock import monotonic

CACHE_SECONDS: Final = 60.0
"""How long an answer is believed: an owner may be scaled meanwhile."""

MAX_OWNERS: Final = 20
"""A group of more makers is not asked about: it would cost more than the reason is worth."""

_KINDS: Final[Mapping[tuple[str, str], Resource]] = MappingProxyType(
    {(it.api_version, it.kind): it for it in (JOBS, JOBSETS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS)}
)
_Asked = tuple[str, PodGroupKey]
"""A JobSet's answer depends on the group; so the UID alone would not do."""


class OwnerCapacityReader:
    """What the makers of pods say of themselves."""

    def __init__(self, client: Client, *, clock: Callable[[], float] = monotonic) -> None:
        self._client, self._clock = client, clock
        self._known: dict[_Asked, tuple[float, tuple[OwnerCapacity, ...]]] = {}

    async def capacities_of(self, seen: GroupSnapshot) -> tuple[OwnerCapacity, ...]:
        """Of all pods of the group that are there. Who has made none yet is not among them."""
        self._tidy()
        key = seen.group.key
        # The Jobs of a JobSet all lead to it, and there may be as many of them as pods.
        makers = {it.jobset or it.controller.uid: it.controller for it in seen.members if it.controller is not None}
        if len(makers) > MAX_OWNERS:
            return ()
        found: dict[str, OwnerCapacity] = {}
        for one in sorted(makers):
            for each in await self._of(makers[one], key):
                found[f"{each.kind} {each.name}"] = each
        if any(it.controller is None for it in seen.members):
            found[""] = owner_capacity.unknown_owner("Pod", "")  # whoever makes pods by hand can make more
        return tuple(found.values())

    async def _of(self, maker: ControllerRef, key: PodGroupKey) -> tuple[OwnerCapacity, ...]:
        asked = maker.uid, key
        if asked not in self._known:
            self._known[asked] = self._clock(), await self._ask(maker, key)
        return self._known[asked][1]

    async def _ask(self, maker: ControllerRef, key: PodGroupKey) -> tuple[OwnerCapacity, ...]:
        nobody = (owner_capacity.unknown_owner(maker.kind, maker.name),)
        kind = _KINDS.get((maker.api_version, maker.kind))
        obj = None if kind is None else await self._get(kind, maker.name, key.namespace)
        if obj is None:
            return nobody
        above = eviction_owners.jobset_of(obj) if kind is JOBS else None
        if above is None:
            return owner_capacity.read_owner(maker.kind, obj, key)
        jobset = await self._get(JOBSETS, above[0], key.namespace)
        return nobody if jobset is None else owner_capacity.read_owner("JobSet", jobset, key)

    async def _get(self, kind: Resource, name: str, namespace: str) -> dict[str, Any] | None:
        """None where it is gone, or nobody lets us look at it."""
        try:
            return await self._client.get(kind, name, namespace)
        except (NotFound, Forbidden):
            return None

    def _tidy(self) -> None:
        """Also so that what is long gone takes up no room."""
        until = self._clock() - CACHE_SECONDS
        self._known = {asked: it for asked, it in self._known.items() if it[0] > until}
