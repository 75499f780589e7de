"""The client of controllers in tests: the verbs of kube.Client on the memory API; `answer` decides about each call."""

# ruff: noqa: A002 - `type` is the word of kube.Client.

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, cast

from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ServerError, Throttled, Unreachable
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, Resource
from jobset_gate_demo.fake.apiserver.patches import patched
from jobset_gate_demo.fake.apiserver.store import label_tests
from tests.fakes.memory_api import Api, Json, labels_of
from tests.fakes.wire_objects import decoded


class Answer(Enum):
    DONE = auto()
    REFUSED = auto()
    """Not carried out: 500."""
    LOST = auto()
    """Carried out, and the answer never arrives."""
    THROTTLED = auto()
    """Not carried out: 429, to be tried again after a while."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call that a controller is about to make."""

    verb: str
    kind: Resource
    name: str
    body: Any = None
    subresource: str = ""
    force: bool = False


RETRY_AFTER = 20.0
REPEATS = 5
"""Of a call that was throttled, by the transport itself, unless the caller wants to hear of it."""

AnswerCall = Callable[[Call], Awaitable[Answer]]


async def answer_done(_: Call) -> Answer:
    return Answer.DONE


class MemoryClient:
    """`calls` is the log of all that was requested; `gate_written` and `gate_removed` are called for each ConfigMap."""

    def __init__(self, api: Api, answer: AnswerCall = answer_done) -> None:
        self.api, self._answer, self._repeats = api, answer, REPEATS
        self.calls: list[Call] = []
        self.gate_written: Callable[[Json | None, Json], None] = lambda _, __: None
        self.gate_removed: Callable[[Json], None] = lambda _: None
        self.read: Callable[[Resource, list[Json]], None] = lambda _, __: None
        """Called with the result of each list and each get."""

    @property
    def client(self) -> Client:
        """This, where a kube.Client is called for."""
        return cast("Client", self)

    def without_retries(self) -> Client:
        """The same, but no request is retried."""
        view = copy(self)
        view._repeats = 0
        return view.client

    async def get(self, resource: Resource, name: str, namespace: str | None = None, *, type: Any = dict) -> Any:
        def work() -> Any:
            found = self.api.get(resource, name, namespace)
            self.read(resource, [] if found is None else [found])
            return decoded(self.api.known(resource, name, namespace), type)

        return await self._do(Call("get", resource, name), work)

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
        type: Any = dict,
    ) -> Any:
        fields = dict(term.split("=", 1) for term in field_selector.split(",") if term)

        def work() -> Any:
            selected = (one for one in self.api.all(resource) if namespace in (None, one["metadata"]["namespace"]))
            found = [one for one in selected if matches_labels(one, label_selector) and _fits(one, fields)]
            first = int(continue_ or 0)
            page = found[first : first + (limit or len(found) + 1)]
            self.read(resource, found)
            more = str(first + len(page)) if first + len(page) < len(found) else ""
            return decoded({"metadata": {"continue": more}, "items": page}, type)

        return await self._do(Call("list", resource, ""), work)

    async def create(
        self,
        resource: Resource,
        body: Mapping[str, Any],
        namespace: str | None = None,
        *,
        dry_run: bool = False,
        field_manager: str | None = None,
        type: Any = dict,
    ) -> Any:
        assert not dry_run

        def work() -> Any:
            made = self.api.create(resource, body, namespace)
            self._note(resource, None, made)
            return decoded(made, type)

        return await self._do(Call("create", resource, body["metadata"]["name"], body), work)

    async def replace(self, resource: Resource, body: Mapping[str, Any], *, type: Any = dict) -> Any:
        name = body["metadata"]["name"]

        def work() -> Any:
            old = self.api.get(resource, name, body["metadata"].get("namespace"))
            made = self.api.replace(resource, body)
            self._note(resource, old, made)
            return decoded(made, type)

        return await self._do(Call("update", resource, name, body), work)

    async def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        body: Any,
        patch: PatchType,
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool = False,
        type: Any = dict,
    ) -> Any:
        meta = body.get("metadata") or {}
        # A write of a custom resource's status takes nothing of metadata but the resourceVersion.
        uid = None if subresource == "status" and resource == JOBSETS else meta.get("uid")
        kept = {name: value for name, value in meta.items() if name != "uid"}
        change = {**body, "metadata": kept} if kept else {key: it for key, it in body.items() if key != "metadata"}

        def work() -> Any:
            old, seen = self.api.get(resource, name, namespace), meta.get("resourceVersion")
            new = self.api.change(resource, name, lambda it: patched(patch, change, it), uid, seen, namespace=namespace)
            if body.get("data"):
                self._note(resource, old, new)
            return decoded(new, type)

        return await self._do(Call("patch", resource, name, body, subresource or "", force), work)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> None:
        def work() -> None:
            old = self.api.get(resource, name, namespace)
            self.api.remove(resource, name, uid, resource_version, namespace=namespace)
            if old is not None and resource == CONFIGMAPS:
                self.gate_removed(old)

        await self._do(Call("delete", resource, name), work)

    async def _do(self, call: Call, work: Callable[[], Any]) -> Any:
        repeats = self._repeats
        while (answer := await self._answer(call)) is Answer.THROTTLED:
            if not repeats:
                raise Throttled(429, "TooManyRequests", "too many requests", retry_after=RETRY_AFTER)
            repeats -= 1
            await asyncio.sleep(RETRY_AFTER)
        if answer is Answer.REFUSED:
            raise ServerError(500, "InternalError", "refused by the schedule")
        self.calls.append(call)
        result = work()
        if answer is Answer.LOST:
            raise Unreachable("the answer was lost by the schedule")
        return result

    def _note(self, resource: Resource, old: Json | None, new: Json) -> None:
        if resource == CONFIGMAPS:
            self.gate_written(old, new)


def _fits(stored: Json, fields: Mapping[str, str]) -> bool:
    about = stored.get("involvedObject", {})
    return all(
        value in (stored.get(key), about.get(key.removeprefix("involvedObject."))) for key, value in fields.items()
    )


def matches_labels(stored: Json, selector: str) -> bool:
    labels = labels_of(stored)
    return all(test(labels) for test in label_tests(selector))
