"""What an API server serves of one API group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
from typing_extensions import override

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import Resource


class _ServedVersion(msgspec.Struct, frozen=True):
    version: str


class _ApiGroup(msgspec.Struct, frozen=True):
    versions: list[_ServedVersion] = []


class _ApiResource(msgspec.Struct, frozen=True):
    name: str


class _ApiResourceList(msgspec.Struct, frozen=True):
    resources: list[_ApiResource] = []


@dataclass(frozen=True, slots=True)
class _DiscoveryDocument(Resource):
    """The document about an API group, or about one version of it."""

    @override
    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        del namespace, name, subresource
        return "/".join(filter(None, ("/apis", self.group, self.version)))


async def served_versions(client: Client, group: str) -> tuple[str, ...]:
    """The served versions of the group, the preferred one first; () if the group is unknown."""
    try:
        found = await client.get(_DiscoveryDocument(group, "", "apis", "APIGroup"), group, type=_ApiGroup)
    except NotFound:
        return ()
    return tuple(one.version for one in found.versions)


async def versions_serving(client: Client, group: str, plural: str, among: Iterable[str]) -> tuple[str, ...]:
    """Which of these versions serve the resource: not every served version serves all resources."""
    served = await served_versions(client, group)
    return tuple([one for one in among if one in served and plural in await _plurals(client, group, one)])


async def _plurals(client: Client, group: str, version: str) -> frozenset[str]:
    try:
        found = await client.get(
            _DiscoveryDocument(group, version, "apis", "APIResourceList"), version, type=_ApiResourceList
        )
    except NotFound:
        return frozenset()
    return frozenset(one.name for one in found.resources)
