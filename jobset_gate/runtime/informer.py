"""Keeps a cache of one resource up to date: lists, watches, and lists again after errors."""

import asyncio
import math
import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import msgspec

from jobset_gate.kube.client import WATCH_IDLE_SECONDS, Client
from jobset_gate.kube.errors import (
    ApiError,
    Expired,
    KubeError,
    NotFound,
    ServerError,
    Throttled,
    Unauthorized,
    WatchIdleTimeout,
)
from jobset_gate.kube.resources import Resource
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.decoder import (
    ObjectDecoder,
    ObjectIdentity,
    OnWatchProblem,
    PartialObjectMetadata,
    WatchEvent,
    WatchProblem,
    WatchProblemKind,
)
from jobset_gate.runtime.flowcontrol import Backoff
from jobset_gate.runtime.paging import ListScope, LoopYielder, list_pages
from jobset_gate.runtime.store import ObjectChange, ObjectKey, ObjectVersion, Staleness, Store, W, is_later

M = TypeVar("M")

WATCH_SECONDS = (50, 60)  # the server ends each watch at a random moment between these
HEALTHY_SECONDS = 5.0  # a watch that lasted so long counts as a success
CRD_POLL_SECONDS = 4.0  # a resource that is not installed is listed again this soon
MAX_RETRY_AFTER = 60.0  # of Retry-After
LIST_SPACING = 10.0  # a relist begins at once if the last list began so long ago
EXTRA_LIST_SECONDS = 1.0  # a line that was lost is followed by a list this soon,
EXTRA_LIST_SPACING = 30.0  # but not more often than this


class WatchExpired(Exception):
    """The watch cannot be continued: list again."""


@dataclass(frozen=True, slots=True)
class WatchSource(Generic[W, M]):
    """What to list and watch, and what becomes of each object.

    `wire` is the msgspec.Struct that objects are decoded into; `convert` makes the model, or returns None to leave the
    object out of the cache. `handler` gets every change. `namespace` None: all namespaces. `written_at` is when the API
    server wrote an object, in Unix time, None if that is unknown; Informer.staleness goes by it. `may_be_absent`: that
    the resource is not installed is no problem.
    """

    resource: Resource
    wire: type[W]
    convert: Callable[[W], M | None]
    handler: Callable[[ObjectChange[M]], None]
    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""
    written_at: Callable[[W], float | None] = lambda _: None
    may_be_absent: bool = False

    @property
    def scope(self) -> ListScope:
        return ListScope(self.resource, self.namespace, self.label_selector, self.field_selector)


AnyWatchSource = WatchSource[Any, Any]


class Informer(Generic[W, M]):
    """A live cache of what `source` selects. Everything waits on the event loop's clock.

    The handler is called synchronously, after the cache has the change; all changes that a relist found are handed over
    in one go, so that nobody sees half of it. An exception of the handler ends run(); one of `convert` only leaves the
    object out (WatchProblemKind.UNCONVERTIBLE). Dropped events leave no trace, so `relist_seconds` is the longest time
    between two lists (None: no limit). `store` takes the results of other reads and writes. Never more than
    one request is open.
    """

    def __init__(
        self,
        client: Client,
        source: WatchSource[W, M],
        *,
        page_size: int = 500,
        relist_seconds: float | None = 600.0,
        rng: random.Random | None = None,
        clock: Callable[[], float] = time.time,
        on_problem: OnWatchProblem = lambda _: None,
    ) -> None:
        self.resource, self._scope = source.resource, source.scope
        self._client = client.without_retries()
        self._convert, self._handler, self._written_at = source.convert, source.handler, source.written_at
        self._page_size, self._relist_seconds = page_size, relist_seconds
        self._rng = rng or random.Random()  # noqa: S311 - jitter
        self._on_problem, self._may_be_absent = on_problem, source.may_be_absent
        self._decoder: ObjectDecoder[W] = ObjectDecoder(source.wire, self._report_problem)
        self.store: Store[Any, M] = Store(self._model)
        self._synced, self._listed = asyncio.Event(), asyncio.Event()
        self._list_failure: Exception | None = None  # of the last list
        self._version = ""
        self._listed_at = -math.inf  # when the last list began
        self._list_due = math.inf
        self._extra_list_due = -math.inf
        self._disconnected_at: float | None = -math.inf  # since when there is no watch; None: there is one
        self._staleness = Staleness(clock)

    @property
    def cache(self) -> Mapping[ObjectKey, M]:
        """Models by (namespace, name); a live view."""
        return MappingProxyType(self.store.models)

    @property
    def has_synced(self) -> bool:
        """Has the handler got all objects of a first list?"""
        return self._synced.is_set()

    @property
    def is_not_installed(self) -> bool:
        """Does the server not have this resource (yet)?"""
        return isinstance(self._list_failure, NotFound)

    @property
    def list_error(self) -> str:
        """Why the last list failed; "" if it did not."""
        return str(self._list_failure or "")

    @property
    def disconnected_for(self) -> float:
        """Seconds without a watch: 0 while there is one, before the first one those since the list, else infinite."""
        return 0.0 if self._disconnected_at is None else monotonic() - self._disconnected_at

    @property
    def staleness(self) -> float:
        """Seconds: the cache has all writes that are older."""
        return self._staleness.seconds

    @property
    def label_selector(self) -> str:
        """What it selects by labels."""
        return self._scope.label_selector

    async def wait_listed(self) -> None:
        """Returns once has_synced, or once the server has said that it does not have this resource."""
        await self._listed.wait()

    async def wait_synced(self) -> None:
        """Returns once has_synced; never if the resource cannot be listed."""
        await self._synced.wait()

    async def run(self) -> None:
        """Ends by cancellation or by an exception of the handler."""
        backoff = Backoff(rng=self._rng)
        resumable = False
        while True:
            start = monotonic()
            try:
                if not resumable:
                    await self._list()
                    resumable, start = True, monotonic()
                await self._watch()
                error: Exception | None = None
            except (WatchExpired, KubeError) as caught:
                error = caught
            healthy = resumable and monotonic() - start >= HEALTHY_SECONDS
            if healthy:
                backoff.reset()
            if error is not None:
                self._report_error(error, resumable)
            pause = 0.0 if healthy and error is None else self._pause(error, backoff, resumable)
            resumable = resumable and _resumable(error)
            await asyncio.sleep(pause)

    # --- lists

    async def _list(self) -> None:
        """Reads all pages, then makes the cache equal to them in one step."""
        listed: dict[ObjectKey, tuple[ObjectVersion, M | None]] = {}
        yielder, version = LoopYielder(), ""
        self._listed_at = monotonic()
        self.store.begin_list()
        async with aclosing(list_pages(self._client, self._scope, self._page_size)) as read:
            async for items, version in read:  # noqa: B007 - all pages have the same version, that of the list
                for raw in items:
                    self._collect(raw, listed)
                    await yielder.yield_after(len(memoryview(raw)))
        changes = self.store.replace(listed, version)
        self._version, self._list_failure = version, None
        self._staleness.observe_list(self._listed_at)
        self._list_due = monotonic() + (self._relist_seconds or math.inf) * self._rng.uniform(0.8, 1.0)
        for change in changes:
            self._handler(change)
            if not self.has_synced:  # before the first sync half a cache does no harm; later nobody may see one
                await yielder.yield_after(0)
        self._disconnected_at = self._listed_at if self._disconnected_at == -math.inf else self._disconnected_at
        self._synced.set()
        self._listed.set()

    def _collect(self, raw: msgspec.Raw, listed: dict[ObjectKey, tuple[ObjectVersion, M | None]]) -> None:
        item = self._decoder.decode_object(raw)
        if item is None or not item.metadata.name:
            return
        listed[(item.metadata.namespace, item.metadata.name)] = self.store.listed(item)

    # --- watches

    async def _watch(self) -> None:
        """One watch, from the latest version to its end. Raises WatchExpired when a list is due."""
        yielder = LoopYielder()
        limit = asyncio.timeout_at(self._list_due if self._list_due < math.inf else None)
        try:
            async with (
                limit,
                self._client.watch(
                    self._scope.resource,
                    self._scope.namespace,
                    label_selector=self._scope.label_selector,
                    field_selector=self._scope.field_selector,
                    resource_version=self._version,
                    timeout_seconds=self._rng.randint(*WATCH_SECONDS),
                    idle_timeout=WATCH_IDLE_SECONDS,
                ) as lines,
            ):
                self._disconnected_at = None
                async for line in lines:
                    event = self._decoder.decode_event(line)
                    if event is None:
                        self._relist_soon()
                        limit.reschedule(self._list_due)
                    else:
                        self._apply(event)
                    await yielder.yield_after(len(line))
        except TimeoutError as error:
            if not limit.expired():
                raise  # the handler's own
            raise WatchExpired from error
        finally:
            self._disconnected_at = monotonic() if self._disconnected_at is None else self._disconnected_at

    def _apply(self, event: WatchEvent[W] | WatchEvent[PartialObjectMetadata]) -> None:
        meta = event.object.metadata
        match event.type:
            case "ADDED" | "MODIFIED":
                change = self.store.put(event.object) if meta.name else None
                self._observe_write(event.object)
            case "DELETED":
                change = self.store.remove(meta)
            case "BOOKMARK":
                change = None
            case "ERROR":
                self._report_problem(WatchProblemKind.ERROR_EVENT, "the server sent an ERROR event")
                raise WatchExpired
            case other:
                self._report_problem(WatchProblemKind.UNREADABLE, f"an event of type {other!r}")
                return
        if is_later(meta.resource_version, self._version) and meta.resource_version:
            self._version = meta.resource_version
        if change is not None:
            self._handler(change)

    def _observe_write(self, item: W | PartialObjectMetadata) -> None:
        written_at = None if isinstance(item, PartialObjectMetadata) else self._written_at(item)
        if written_at is not None:
            self._staleness.observe_event(written_at)

    def _model(self, item: W | PartialObjectMetadata) -> M | None:
        if isinstance(item, PartialObjectMetadata):
            return None
        try:
            return self._convert(item)
        except Exception as error:  # noqa: BLE001 - one odd object of one user must not hide all others
            self._report_problem(
                WatchProblemKind.UNCONVERTIBLE, f"{item.metadata.namespace}/{item.metadata.name}: {error!r}"
            )
            return None

    def _relist_soon(self) -> None:
        """A line was lost that may have been a change: list soon, but not after every such line."""
        self._staleness.observe_loss()
        due = max(monotonic() + EXTRA_LIST_SECONDS, self._extra_list_due + EXTRA_LIST_SPACING)
        if due < self._list_due:
            self._list_due = self._extra_list_due = due

    # --- errors

    def _pause(self, error: Exception | None, backoff: Backoff, listed: bool) -> float:
        pause = backoff.next()
        if isinstance(error, NotFound) and not listed:
            return min(pause, CRD_POLL_SECONDS)
        may_list = monotonic() - self._listed_at >= LIST_SPACING
        if may_list and isinstance(error, WatchExpired | WatchIdleTimeout | Expired):
            return 0.0
        if isinstance(error, ApiError) and error.retry_after is not None:
            return max(pause, min(error.retry_after, MAX_RETRY_AFTER))
        return pause

    def _report_error(self, error: Exception, listed: bool) -> None:
        if not listed:
            self._list_failure = error
            if isinstance(error, NotFound):
                self._listed.set()
        match error:
            case WatchExpired():
                return
            case Expired():
                kind = WatchProblemKind.EXPIRED
            case WatchIdleTimeout():
                kind = WatchProblemKind.SILENT
            case _:
                kind = WatchProblemKind.WATCH_FAILED if listed else WatchProblemKind.LIST_FAILED
        if not (self._may_be_absent and self.is_not_installed):
            self._report_problem(kind, str(error))

    def _report_problem(self, kind: WatchProblemKind, detail: str) -> None:
        self._on_problem(WatchProblem(kind, self.resource, detail))


AnyInformer = Informer[Any, Any]


def not_synced(informers: Iterable[AnyInformer], may_be_absent: Collection[Resource]) -> str:
    """What is not listed yet and why, "" if nothing is missing. `may_be_absent`: what may be installed later."""
    missing = [
        it for it in informers if not it.has_synced and not (it.resource in may_be_absent and it.is_not_installed)
    ]
    words = [f"{it.resource.plural} ({it.list_error})" if it.list_error else it.resource.plural for it in missing]
    return f"not listed yet: {', '.join(dict.fromkeys(words))}" if words else ""


async def wait_for_sync(informers: Iterable[AnyInformer], may_be_absent: Collection[Resource]) -> None:
    """Returns when all that is installed is listed: before, an object may be missing in a cache only."""
    for informer in informers:
        await (informer.wait_listed() if informer.resource in may_be_absent else informer.wait_synced())


class _AnyObject(msgspec.Struct, frozen=True, gc=False):
    metadata: ObjectIdentity


def object_informer(
    client: Client,
    resource: Resource,
    name: str,
    handler: Callable[[ObjectChange[str]], None],
    *,
    namespace: str | None = None,
    on_problem: OnWatchProblem = lambda _: None,
) -> Informer[_AnyObject, str]:
    """Of one object, since RBAC grants watch by name. Its cache holds the resourceVersion, and nothing of the content.

    That the object is missing is no change: the handler does not hear of it.
    """
    source = WatchSource(
        resource,
        _AnyObject,
        lambda it: it.metadata.resource_version,
        handler,
        namespace=namespace,
        field_selector=f"metadata.name={name}",
    )
    return Informer(client, source, on_problem=on_problem)


def _resumable(error: Exception | None) -> bool:
    """May the next watch begin where this one ended? In doubt not: a list is always right."""
    match error:
        case None | Throttled() | ServerError() | Unauthorized():
            return True
        case ApiError() | WatchIdleTimeout() | WatchExpired():
            return False
        case _:
            return True  # a connection that broke
