"""What a check reads and what it finds. Everything is read once, and a right that is missing is a sentence."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, Final, TypeVar

from typing_extensions import override

from jobset_gate import names
from jobset_gate.barrier.source import Source
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.controller_status import LABELS
from jobset_gate.cli.fetch.gangs import FetchedGang, GangSource
from jobset_gate.cli.fetch.source import PAGE, Permissions, forbidden_text
from jobset_gate.errors import JobsetGateError
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import DEPLOYMENTS, JOBS, JOBSETS, PODS, Resource
from jobset_gate.objects.unstructured import Json, as_list, nested
from jobset_gate.runtime.paging import ListScope, list_objects
from jobset_gate.sources.table import JOB, JOBSET, LWS, START_GROUP

T = TypeVar("T")


class FindingLevel(StrEnum):
    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    UNKNOWN = "unknown"
    """It could not be read: a right is missing, or the API does not show it."""


@dataclass(frozen=True, slots=True)
class Finding:
    level: FindingLevel
    what: str
    why: str = ""
    remedy: str = ""


ok = partial(Finding, FindingLevel.OK)
"""As it should be."""
warning = partial(Finding, FindingLevel.WARNING)
"""It works, and not as well as it could."""
error = partial(Finding, FindingLevel.ERROR)
"""Gangs are not held, or not released."""
unknown = partial(Finding, FindingLevel.UNKNOWN)
"""Not seen."""


# --- The cluster -----------------------------------------------------------------------------------------------------


class NotReadable(JobsetGateError):
    """A check lacks a right; the message names it."""


@dataclass(frozen=True)
class _RawPath(Resource):
    """A document of the API server or of a kubelet, which is no object."""

    at: str = ""

    @override
    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        return self.at


@dataclass(slots=True)
class ClusterReader:
    """`namespace` None: the gangs of all namespaces are read; dry runs are made in `dry_run_namespace`."""

    client: Client
    namespace: str | None
    dry_run_namespace: str
    rights: Permissions = field(default_factory=Permissions)
    """The rights that were missing when gangs were read."""
    _known: dict[Any, asyncio.Task[Any]] = field(default_factory=dict)

    async def list_objects(self, resource: Resource, namespace: str | None = None, labels: str = "") -> list[Json]:
        """The objects of that kind; none where the API server does not know the kind. Raises NotReadable."""
        return await self._once((resource, namespace, labels), self._list(resource, namespace, labels))

    async def get_object(self, resource: Resource, name: str, namespace: str | None = None) -> Json | None:
        """One object; None if it is not there. Raises NotReadable."""
        return await self._once((resource, namespace, name, "get"), self._get(resource, name, namespace))

    async def server_version(self) -> str:
        """`v1.36.0`. Raises NotReadable."""
        found = await self._document("/version", "version")
        return str(nested(found, "gitVersion") or "")

    async def sync_frequency(self, node: str) -> str:
        """How often the kubelet of this node looks at its pods, `1m0s`. Raises NotReadable."""
        found = await self._document(f"/api/v1/nodes/{node}/proxy/configz", "configz")
        return str(nested(found, "kubeletconfig", "syncFrequency") or "")

    async def _document(self, path: str, name: str) -> Json | None:
        return await self.get_object(_RawPath("", "", name, "", at=path), name)

    async def gangs(self) -> list[FetchedGang]:
        """The gangs of the namespaces, with their Jobs and pods as far as they are readable."""
        return await self._once("gangs", self._gangs())

    async def _gangs(self) -> list[FetchedGang]:
        found = await self._of_jobsets()
        found += await self._of(JOB, JOBS, "gangs of Jobs were not looked at")
        found += await self._of(LWS, PODS, "groups of LeaderWorkerSets were not looked at")
        return found + await self._of(START_GROUP, PODS, "start groups were not looked at")

    async def _of(self, source: Source, resource: Resource, unknown: str) -> list[FetchedGang]:
        found = GangSource(self.client, self.namespace, self.rights, of=(source,))
        try:
            await found.load()
        except CommandError:
            self.rights.add_missing("list", resource, self.namespace, unknown)
            return []
        return found.gangs()

    async def _of_jobsets(self) -> list[FetchedGang]:
        source = GangSource(self.client, self.namespace, self.rights, of=(JOBSET,))
        try:
            await source.load()
            return source.gangs()
        except CommandError as no:
            if isinstance(no.__cause__, NotFound):
                return []
            if self.namespace is not None:
                raise NotReadable(str(no)) from no
        self.rights, self.namespace = Permissions(), self.dry_run_namespace
        self.rights.add_missing("list", JOBSETS, None, f"only gangs of namespace {self.namespace} were looked at")
        return await self._of_jobsets()

    async def _once(self, key: Any, wanted: Coroutine[Any, Any, T]) -> T:
        """Checks run side by side, and several of them need the same."""
        if key in self._known:
            wanted.close()
        else:
            self._known[key] = asyncio.ensure_future(wanted)
        found: T = await self._known[key]
        return found

    async def _list(self, resource: Resource, namespace: str | None, labels: str) -> list[Json]:
        scope = ListScope(resource, namespace, labels)
        try:
            return [it async for it in list_objects(self.client, scope, dict[str, Any], PAGE)]
        except NotFound:
            return []
        except Forbidden as no:
            raise NotReadable(forbidden_text("list", resource, namespace)) from no

    async def _get(self, resource: Resource, name: str, namespace: str | None) -> Json | None:
        try:
            return await self.client.get(resource, name, namespace)
        except NotFound:
            return None
        except Forbidden as no:
            raise NotReadable(f"{forbidden_text('get', resource, namespace)} ({name})") from no


WEBHOOK: Final = f"app.kubernetes.io/name={names.PROGRAM},app.kubernetes.io/component=webhook"


async def controllers(reader: ClusterReader) -> list[Json]:
    """Usually one. Raises NotReadable."""
    return await reader.list_objects(DEPLOYMENTS, labels=LABELS)


async def webhooks(reader: ClusterReader) -> list[Json]:
    """Those of the webhook; usually one. Raises NotReadable."""
    return await reader.list_objects(DEPLOYMENTS, labels=WEBHOOK)


def is_held(pod: Json) -> bool:
    """Whether it has our scheduling gate."""
    return any(nested(it, "name") == names.POD_GROUP_GATE for it in as_list(nested(pod, "spec", "schedulingGates")))
