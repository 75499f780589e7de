"""Objects of several kinds from the API server: listed once by `load`, or watched for as long as a command runs."""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Self

from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import Resource
from jobset_gate.runtime.decoder import WatchProblem, WatchProblemKind
from jobset_gate.runtime.informer import AnyInformer, AnyWatchSource, Informer
from jobset_gate.runtime.paging import list_objects
from jobset_gate.runtime.store import ObjectChange, ObjectKey

PAGE: Final = 500
_BY_NAME: Final = "metadata.name="
_VERBS: Final = {WatchProblemKind.LIST_FAILED: "list", WatchProblemKind.WATCH_FAILED: "watch"}
_NOT_FOUND, _FORBIDDEN = "404", "403"  # how the detail of a WatchProblem begins


@dataclass(slots=True)
class Permissions:
    """`missing` has one sentence for each right that was refused, and for each object that could not be decoded."""

    missing: list[str] = field(default_factory=list)
    hidden_kinds: set[str] = field(default_factory=set)
    """Kinds of gangs that may not be listed at all, as messages name them."""

    def add_missing(self, verb: str, resource: Resource, namespace: str | None, unknown: str) -> None:
        """`cannot list events in namespace x: what the quota said is not known`."""
        self.add_sentence(f"{forbidden_text(verb, resource, namespace)}: {unknown}")

    def add_sentence(self, sentence: str) -> None:
        """Each once."""
        if sentence not in self.missing:
            self.missing.append(sentence)


def forbidden_text(verb: str, resource: Resource, namespace: str | None) -> str:
    """`cannot list pods in namespace x`."""
    kind = resource_name(resource)
    if not resource.namespaced:
        return f"cannot {verb} {kind}"
    return f"cannot {verb} {kind} " + (f"in namespace {namespace}" if namespace else "in all namespaces")


def resource_name(resource: Resource) -> str:
    """As RBAC rules and kubectl name it: `podgroups.scheduling.x-k8s.io`."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


@dataclass(slots=True)
class NamespaceReader:
    """Where a command reads, and which rights it lacked."""

    client: Client
    namespace: str
    permissions: Permissions = field(default_factory=Permissions)


class ObjectNotFound(CommandError):
    """There is no object of that name."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """One kind of objects that could not be read: `forbidden`, or else not found."""

    source: AnyWatchSource
    verb: str
    forbidden: bool
    message: str


class ResourceSource:
    """`await load()` reads everything once; `async with` watches. Both call the handlers of the same WatchSources.

    A source that selects one object by name is read by `get` in `load`, which needs fewer rights than `list`. `changed`
    is set after every change; several sources may share one event.
    """

    def __init__(self, client: Client, permissions: Permissions) -> None:
        self.permissions = permissions
        self.changed = asyncio.Event()
        self.problem = ""
        """Why the watch is interrupted; "" while it works."""
        self.failed: CommandError | None = None
        """Why there is nothing to show, and never will be."""
        self.watching = False
        self._client = client
        self._known: Mapping[Resource, Sequence[Any]] = {}
        self._informers: list[AnyInformer] = []
        self._without: set[int] = set()
        self._tasks: list[asyncio.Task[None]] = []

    def sources(self) -> Sequence[AnyWatchSource]:
        """What to read, with handlers of a fresh cache."""
        raise NotImplementedError

    def on_unavailable(self, it: Unavailable) -> bool:
        """Whether the command goes on without these objects; sets `failed` where it cannot."""
        raise NotImplementedError

    def check(self) -> None:
        """Raises CommandError where there is nothing to show."""
        if self.failed is not None:
            raise self.failed

    # --- Read once ---------------------------------------------------------------------------------------------------

    async def load(self, known: Mapping[Resource, Sequence[Any]] | None = None) -> None:
        """Reads everything once. Raises CommandError where there is nothing to show, and what Client.list raises.

        `known`: objects that the caller has read already, by their resource.
        """
        self._known = known or {}
        await self._load_all(self.sources())
        self.permissions.missing.sort()
        self.check()

    async def _load_all(self, sources: Iterable[AnyWatchSource]) -> None:
        await asyncio.gather(*map(self._load, sources))

    async def _load(self, source: AnyWatchSource) -> None:
        """An object that cannot be decoded is named, and hides no other."""
        name, add = _selected_name(source), self.permissions.add_sentence
        try:
            if source.resource in self._known:
                found = list(self._known[source.resource])
            elif name:
                found = [await self._client.get(source.resource, name, source.namespace, type=source.wire)]
            else:
                listed = list_objects(self._client, source.scope, source.wire, PAGE, on_unreadable=add)
                found = [it async for it in listed]
        except (Forbidden, NotFound) as error:
            verb, forbidden = "get" if name else "list", isinstance(error, Forbidden)
            if not self.on_unavailable(Unavailable(source, verb, forbidden, str(error))):
                raise
            if self.failed is not None:
                self.failed.__cause__ = error
            return
        for item in found:
            model = source.convert(item)
            if model is not None:
                source.handler(ObjectChange((item.metadata.namespace, item.metadata.name), None, model))

    # --- Watched -----------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self.watching = True
        for number, source in enumerate(self.sources()):
            counted = replace(source, handler=partial(self._on_change, source))
            informer = Informer(self._client, counted, on_problem=partial(self._on_problem, number, source))
            self._informers.append(informer)
            listed = asyncio.create_task(informer.wait_listed())
            listed.add_done_callback(lambda _: self._mark_changed())
            self._tasks += [asyncio.create_task(informer.run()), listed]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def ready(self) -> None:
        """Returns once everything was listed that may be. Raises CommandError where there is nothing to show."""
        found = list(enumerate(self._informers))
        while not all(it.has_synced or it.is_not_installed or number in self._without for number, it in found):
            await self.change()

    async def change(self) -> None:
        """Returns after the next change. Raises CommandError where there is nothing left to show."""
        self.check()
        await self.changed.wait()
        self.changed.clear()
        self.check()

    def _on_change(self, source: AnyWatchSource, change: ObjectChange[Any]) -> None:
        source.handler(change)
        self._mark_changed()

    def _mark_changed(self) -> None:
        self.problem = ""
        self.changed.set()

    def _on_problem(self, number: int, source: AnyWatchSource, problem: WatchProblem) -> None:
        verb, forbidden = _VERBS.get(problem.kind, ""), problem.detail.startswith(_FORBIDDEN)
        unreadable = bool(verb) and (forbidden or problem.detail.startswith(_NOT_FOUND))
        if unreadable and self.on_unavailable(Unavailable(source, verb, forbidden, problem.detail)):
            self._without.add(number)
            self.changed.set()
        elif verb or problem.kind is WatchProblemKind.SILENT:
            self.problem = f"the API server does not answer; trying again: {problem.detail}"
            self.changed.set()


def has_fields(selector: str, namespace: str, name: str) -> bool:
    """Whether an object fits a field selector; an API server knows no more fields of JobSets and PodGroups either.

    Raises CommandError for any other field.
    """
    fields = {"metadata.namespace": namespace, "metadata.name": name}
    for each in filter(None, selector.split(",")):
        field, differs, value = re.fullmatch(r"([^=!]*)(!?)=?=?(.*)", each).groups()  # type: ignore[union-attr]
        if field not in fields or "=" not in each:
            raise CommandError(f"--field-selector {each}: fields are {', '.join(fields)}, by = or !=", ExitCode.USAGE)
        if (fields[field] == value) is bool(differs):
            return False
    return True


def keep(cache: dict[ObjectKey, Any]) -> Callable[[ObjectChange[Any]], None]:
    """A handler that keeps what there is."""

    def handle(change: ObjectChange[Any]) -> None:
        if change.new is None:
            cache.pop(change.key, None)
        else:
            cache[change.key] = change.new

    return handle


def _selected_name(source: AnyWatchSource) -> str:
    field = source.field_selector
    return field.removeprefix(_BY_NAME) if field.startswith(_BY_NAME) else ""
