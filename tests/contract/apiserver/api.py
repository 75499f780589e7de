"""Plain HTTP to either API server, so that a test sees exactly its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

import aiohttp
import msgspec

from jobset_gate import names
from jobset_gate.kube.access import Access
from tests.fakes.eventually import PATIENCE

Json = dict[str, Any]

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `object` is the body, a Status for a refusal."""

    status: int
    object: Json
    warnings: list[str]

    @property
    def meta(self) -> Json:
        meta: Json = self.object["metadata"]
        return meta

    @property
    def reason(self) -> str:
        return str(self.object.get("reason", ""))

    @property
    def message(self) -> str:
        return str(self.object.get("message", ""))

    @property
    def causes(self) -> list[str]:
        """The fields that a refusal names."""
        return [cause["field"] for cause in (self.object.get("details") or {}).get("causes", [])]


class RawApi:
    """`async with Api(plane.access, namespace) as api`; paths say {ns} for the namespace."""

    def __init__(self, access: Access, namespace: str) -> None:
        self._access = access
        self.namespace = namespace
        self._session = aiohttp.ClientSession(headers={"User-Agent": "tester/1.0"})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    def url(self, path: str) -> str:
        return self._access.server + path.format(ns=self.namespace)

    async def call(self, method: str, path: str, body: Any = None, content: str = JSON) -> Reply:
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content}
        tls = self._access.ssl or True
        async with self._session.request(method, self.url(path), data=data, headers=headers, ssl=tls) as got:
            text = await got.read()
            read: Any = msgspec.json.decode(text) if text.startswith(b"{") else {"text": text.decode()}
            return Reply(got.status, read, got.headers.getall("Warning", []))

    async def get(self, path: str) -> Reply:
        return await self.call("GET", path)

    async def post(self, path: str, body: Any) -> Reply:
        return await self.call("POST", path, body)

    async def put(self, path: str, body: Any) -> Reply:
        return await self.call("PUT", path, body)

    async def merge(self, path: str, body: Any) -> Reply:
        return await self.call("PATCH", path, body, MERGE)

    async def apply(self, path: str, body: Any, manager: str = "applier", *, force: bool = False) -> Reply:
        forced = "&force=true" if force else ""
        return await self.call("PATCH", f"{path}?fieldManager={manager}{forced}", body, APPLY)

    async def delete(self, path: str, **options: Any) -> Reply:
        return await self.call("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **options})

    @asynccontextmanager
    async def watch(self, path: str, query: str = "") -> AsyncIterator[Watched]:
        """`query` after `watch=1&`."""
        url = f"{self.url(path)}?watch=1&{query}"
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(url, ssl=self._access.ssl or True, timeout=timeout) as got:
            yield Watched(got)


@dataclass(slots=True)
class Watched:
    """An open watch."""

    answer: aiohttp.ClientResponse

    async def next(self) -> Json | None:
        """The next event, None at the end of the stream.

        The real control plane puts a certificate bundle into every namespace, sooner or later: it is passed over.
        """
        while True:
            async with asyncio.timeout(PATIENCE):
                line = await self.answer.content.readline()
            event: Json | None = msgspec.json.decode(line) if line.strip() else None
            if event is None or event["object"].get("metadata", {}).get("name") != "kube-root-ca.crt":
                return event

    async def until(self, name: str, type_: str | None = None) -> list[tuple[str, str]]:
        """(type, name) of all events up to the one about `name` (of that type)."""
        seen: list[tuple[str, str]] = []
        while True:
            event = await self.next()
            assert event is not None, f"the watch ended after {seen}"
            seen.append((event["type"], event["object"].get("metadata", {}).get("name", "")))
            if seen[-1][1] == name and type_ in (None, event["type"]):
                return seen


CONFIGMAPS = "/api/v1/namespaces/{ns}/configmaps"
PODS = "/api/v1/namespaces/{ns}/pods"
JOBSETS = f"/apis/{names.JOBSET_API_VERSION}/namespaces/{{ns}}/jobsets"


def config_map(name: str = "c", *, meta: Json | None = None, **data: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **(meta or {})}, "data": data}


def pod(name: str = "p", *, meta: Json | None = None, **spec: Any) -> Json:
    containers = [{"name": "main", "image": "busybox:1.37"}]
    body = {"containers": containers, "automountServiceAccountToken": False, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **(meta or {})}, "spec": body}


async def bind(api: RawApi, name: str, node: str) -> Reply:
    """Put a pod on a node."""
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    return await api.post(f"{PODS}/{name}/binding", body)


def jobset(**spec: Any) -> Json:
    """A kind with a schema, a status subresource, list maps and defaults."""
    return {"apiVersion": names.JOBSET_API_VERSION, "kind": "JobSet", "metadata": {"name": "g"}, "spec": spec}
