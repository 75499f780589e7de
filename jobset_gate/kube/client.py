"""The verbs of the Kubernetes API: get, list, create, replace, patch, delete, watch."""

# ruff: noqa: A002 - `type` is the word of msgspec.json.decode() for the same thing.

import enum
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from copy import copy
from types import TracebackType
from typing import Any, Self

import msgspec
from typing_extensions import TypeVar

from jobset_gate.kube.access import Access
from jobset_gate.kube.errors import DECODE_ERRORS, InvalidResponse, NotFound
from jobset_gate.kube.resources import Resource
from jobset_gate.kube.transport import MAX_RETRIES, ApiRequest, Guard, ObserveRequest, Transport

T = TypeVar("T", default=dict[str, Any])

WATCH_IDLE_SECONDS = 65.0  # the server ends each of our watches before, so a longer pause means that it is dead


class _ApiResource(msgspec.Struct, frozen=True):
    name: str


class _ApiResourceList(msgspec.Struct, frozen=True):
    resources: list[_ApiResource] = []


class PatchType(enum.StrEnum):
    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"  # the body is JSON, which is YAML
    STRATEGIC = "application/strategic-merge-patch+json"


class Client:
    """`async with Client(access) as client`. One per process is enough: connections are shared and kept alive.

    `type` is what a response is decoded into: a dict by default, a msgspec.Struct, or msgspec.Raw for the bytes. All
    verbs raise ApiError (see errors.py), Unreachable, and InvalidResponse when a body does not fit `type`.
    """

    def __init__(
        self,
        access: Access,
        *,
        user_agent: str = "jobset-gate",
        timeout: float = 30.0,
        connections: int = 100,
        observe: ObserveRequest | None = None,
    ) -> None:
        self.access = access
        self.user_agent = user_agent
        self._transport = Transport(
            access, user_agent=user_agent, timeout=access.timeout or timeout, connections=connections, observe=observe
        )
        self._guard: Guard | None = None
        self._retries = MAX_RETRIES

    async def __aenter__(self) -> Self:
        self._transport.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.close()

    def with_guard(self, guard: Guard | None) -> "Client":
        """The same connections with another guard (or none) before each write."""
        return self._view(guard, self._retries)

    def without_retries(self) -> "Client":
        """The same connections without retries: for a caller that has a back-off of its own."""
        return self._view(self._guard, 0)

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, type: type[T] | None = None
    ) -> T:
        return await self._send(ApiRequest("get", resource.plural, resource.path(namespace, name)), type)

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int | None = None,
        continue_: str = "",
        max_bytes: int | None = None,
        type: type[T] | None = None,
    ) -> T:
        """One page: the List object, with metadata.continue if there is more. Expired: `continue_` is too old.

        ResponseTooLarge: the page has more than `max_bytes`.
        """
        paging = {"limit": str(limit or ""), "continue": continue_}
        params = _without_empty(labelSelector=label_selector, fieldSelector=field_selector, **paging)
        call = ApiRequest("list", resource.plural, resource.path(namespace), params, max_bytes=max_bytes)
        return await self._send(call, type)

    async def first_served(self, resources: Iterable[Resource]) -> Resource | None:
        """The first of these that the API server serves: not every served version of a group serves all resources."""
        for resource in resources:
            call = ApiRequest("get", "apis", f"/apis/{resource.group}/{resource.version}")
            try:
                served = await self._send(call, _ApiResourceList)
            except NotFound:
                continue
            if any(one.name == resource.plural for one in served.resources):
                return resource
        return None

    async def create(
        self,
        resource: Resource,
        body: Mapping[str, Any],
        namespace: str | None = None,
        *,
        dry_run: bool = False,
        field_manager: str | None = None,
        type: type[T] | None = None,
    ) -> T:
        """The object as it was stored. The namespace defaults to the body's. AlreadyExists: the name is taken."""
        path = resource.path(namespace or body.get("metadata", {}).get("namespace"))
        if resource.namespaced and "/namespaces/" not in path:
            raise ValueError(f"create {resource.plural}: no namespace, neither given nor in the body")
        params = _without_empty(dryRun="All" if dry_run else "", fieldManager=field_manager)
        call = ApiRequest("create", resource.plural, path, params, msgspec.json.encode(_with_kind(resource, body)))
        return await self._send(call, type)

    async def replace(
        self,
        resource: Resource,
        body: Mapping[str, Any],
        *,
        subresource: str | None = None,
        type: type[T] | None = None,
    ) -> T:
        """PUT; name, namespace and (for compare-and-swap) resourceVersion are the body's. Conflict: it has changed."""
        meta = body["metadata"]
        path = resource.path(meta.get("namespace"), meta["name"], subresource)
        call = ApiRequest("update", resource.plural, path, {}, msgspec.json.encode(_with_kind(resource, body)))
        return await self._send(call, type)

    async def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        body: object,
        patch: PatchType,
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool = False,
        dry_run: bool = False,
        type: type[T] | None = None,
    ) -> T:
        """`body`: a list of operations for JSON, else a partial object. APPLY needs a manager: ours unless given."""
        if patch is PatchType.APPLY and isinstance(body, Mapping):
            field_manager = field_manager or self.user_agent
            meta = {"name": name, **({"namespace": namespace} if namespace else {}), **body.get("metadata", {})}
            body = {**_with_kind(resource, body), "metadata": meta}  # the API wants what the URL says once more
        params = _without_empty(
            dryRun="All" if dry_run else "", fieldManager=field_manager, force="true" if force else ""
        )
        path = resource.path(namespace, name, subresource)
        call = ApiRequest("patch", resource.plural, path, params, msgspec.json.encode(body), str(patch))
        return await self._send(call, type)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        """`uid` and `resource_version` are preconditions (Conflict if they do not hold); NotFound if there is none."""
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if preconditions := _without_empty(uid=uid, resourceVersion=resource_version):
            options["preconditions"] = preconditions
        if propagation:
            options["propagationPolicy"] = propagation
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        path = resource.path(namespace, name)
        call = ApiRequest("delete", resource.plural, path, {}, msgspec.json.encode(options))
        await self._send(call, msgspec.Raw)

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST to a path that is no collection, such as a pod's binding or eviction."""
        call = ApiRequest("post", path.rsplit("/", 1)[-1], path, {}, msgspec.json.encode(body))
        return await self._send(call, None)

    def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str,
        timeout_seconds: int,
        allow_bookmarks: bool = True,
        idle_timeout: float = WATCH_IDLE_SECONDS,
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The raw lines of a watch, `{"type":...,"object":...}`; b"" for a line that was too long.

        Entering raises ApiError for any status but 2xx; reading raises Unreachable when the connection breaks, and
        WatchIdleTimeout after `idle_timeout` seconds without a byte. The lines end when the server ends the watch.
        There are no retries.
        """
        params = _without_empty(
            watch="true",
            labelSelector=label_selector,
            fieldSelector=field_selector,
            resourceVersion=resource_version,
            timeoutSeconds=str(timeout_seconds),
            allowWatchBookmarks="true" if allow_bookmarks else "",
        )
        call = ApiRequest("watch", resource.plural, resource.path(namespace), params)
        return self._transport.stream(call, idle_timeout)

    def _view(self, guard: Guard | None, retries: int) -> "Client":
        view = copy(self)
        view._guard, view._retries = guard, retries  # noqa: SLF001 - another Client
        return view

    async def _send(self, call: ApiRequest, type: type[T] | None) -> T:
        body = await self._transport.send(call, self._guard, self._retries)
        wanted: Any = type if type is not None else dict[str, Any]
        if wanted is msgspec.Raw:
            raw: Any = msgspec.Raw(body)
            return raw  # type: ignore[no-any-return]  # T is Raw here, which mypy cannot see
        try:
            decoded: T = msgspec.json.decode(body, type=wanted)
        except DECODE_ERRORS as error:
            raise InvalidResponse(f"{call.method} {call.path}: {error}") from error
        return decoded


def _with_kind(resource: Resource, body: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **body}


def _without_empty(**params: str | None) -> dict[str, str]:
    return {key: value for key, value in params.items() if value}
