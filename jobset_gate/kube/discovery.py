"""What an API server serves of one API group."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from typing_extensions import override

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import Resource


class _Version(msgspec.Struct, frozen=True):
    version: str


class _Document(msgspec.Struct, frozen=True):
    versions: list[_Version] = []


@dataclass(frozen=True, slots=True)
class _Group(Resource):
    """The document about a group, which is no object."""

    @override
    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        del namespace, name, subresource
        return f"/apis/{self.group}"


async def versions(client: Client, group: str) -> tuple[str, ...]:
    """Those that are served, the server's favourite first; () if it does not know the group."""
    try:
        found = await client.get(_Group(group, "", "apis", "APIGroup"), group, type=_Document)
    except NotFound:
        return ()
    return tuple(one.version for one in found.versions)
