"""An API server small enough for one test: objects by kind, namespace and name, versions, UIDs, no schema.

Every write may be refused, or land and lose its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, cast

import msgspec

from jobset_gate.fake.clock import VirtualClock
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import AlreadyExists, Conflict, Invalid, KubeError, NotFound, Unreachable
from jobset_gate.kube.resources import PODS, Resource
from tests.fakes.podgroups.snapshots import timestamp
from tests.fakes.podgroups.sources import Json

OnObjectChange = Callable[[Resource, Json | None, Json | None], None]
WriteFault = Callable[[str, Resource, str, Any], "KubeError | str | None"]
"""(Verb, kind, name, body) of a write: an error refuses it, "lost" lets it land and loses the answer."""


class InMemoryApi:
    """`writes` is the log of those that landed; `tell` hears of every change."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.writes: list[tuple[str, Resource, str, Any]] = []
        self.fault: WriteFault = lambda *_: None
        self.on_change: OnObjectChange = lambda *_: None
        self._objects: dict[tuple[Resource, str, str], Json] = {}
        self._version = 1000
        self._numbers = count()

    @property
    def client(self) -> Client:
        return cast("Client", self)

    def without_retries(self) -> Client:
        return self.client

    async def get(self, resource: Resource, name: str, namespace: str = "", *, type: Any = dict) -> Any:  # noqa: A002
        await asyncio.sleep(0)
        return decoded_as(self.stored(resource, namespace, name), type)

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        type: Any = dict,  # noqa: A002
        **_: Any,
    ) -> Any:
        await asyncio.sleep(0)
        return decoded_as({"items": self.all(resource, namespace, label_selector)}, type)

    async def create(self, resource: Resource, body: Json, namespace: str = "", *, type: Any = dict, **_: Any) -> Any:  # noqa: A002
        name = body["metadata"]["name"]

        def work() -> Json:
            if (resource, namespace, name) in self._objects:
                raise AlreadyExists(409, "AlreadyExists", name)
            return self.put(resource, {**body, "metadata": {**body["metadata"], "namespace": namespace}})

        return decoded_as(await self._write("create", resource, name, body, work), type)

    async def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        body: Any,
        patch: PatchType,
        subresource: str | None = None,
        type: Any = dict,  # noqa: A002
        **_: Any,
    ) -> Any:
        def work() -> Json:
            found = self.stored(resource, namespace, name)
            meta, wanted = found["metadata"], body.get("metadata", {})
            if wanted.get("resourceVersion", meta["resourceVersion"]) != meta["resourceVersion"]:
                raise Conflict(409, "Conflict", name)
            if wanted.get("uid", meta["uid"]) != meta["uid"]:
                raise Invalid(422, "Invalid", name, details={"causes": [{"field": "metadata.uid"}]})
            return self.put(resource, merge_patched(found, body, strategic=patch is PatchType.STRATEGIC))

        verb = f"patch {subresource}" if subresource else "patch"
        return decoded_as(await self._write(verb, resource, name, body, work), type)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", *, uid: str | None = None, **preconditions: Any
    ) -> None:
        def work() -> Json:
            found = self.stored(resource, namespace, name)
            version = preconditions.get("resource_version") or found["metadata"]["resourceVersion"]
            if uid not in (None, found["metadata"]["uid"]) or version != found["metadata"]["resourceVersion"]:
                raise Conflict(409, "Conflict", name)
            self.remove(resource, name, namespace)
            return found

        await self._write("delete", resource, name, None, work)

    # --- What is there ------------------------------------------------------------------------------------------------

    def put(self, resource: Resource, body: Json) -> Json:
        """This object is there from now on, in a new version."""
        self._version += 1
        version = str(self._version)
        meta = {"namespace": "", "uid": f"uid-{version}", **body["metadata"], "resourceVersion": version}
        if resource == PODS:
            meta.setdefault("creationTimestamp", timestamp(self.clock()))
        place = resource, meta["namespace"], meta["name"]
        old, new = self._objects.get(place), {**body, "metadata": meta}
        self._objects[place] = new
        self.on_change(resource, old, new)
        return new

    def remove(self, resource: Resource, name: str, namespace: str = "team") -> None:
        self.on_change(resource, self._objects.pop((resource, namespace, name)), None)

    def all(self, resource: Resource, namespace: str | None = None, selector: str = "") -> Sequence[Json]:
        return [
            it
            for (kind, where, _), it in self._objects.items()
            if kind == resource and namespace in (None, where) and matches_selector(it, selector)
        ]

    async def _write(self, verb: str, resource: Resource, name: str, body: Any, work: Callable[[], Json]) -> Json:
        await asyncio.sleep(0)
        fate = self.fault(verb, resource, name, body)
        if isinstance(fate, KubeError):
            raise fate
        self.writes.append((verb, resource, name, body))
        done = work()
        if fate is not None:
            raise Unreachable("the answer was lost")
        return done

    def stored(self, resource: Resource, namespace: str, name: str) -> Json:
        found = self._objects.get((resource, namespace, name))
        if found is None:
            raise NotFound(404, "NotFound", name)
        return found


def matches_selector(body: Json, selector: str) -> bool:
    """Whether a selector of labels matches."""
    labels = body["metadata"].get("labels") or {}
    if " in (" in selector:
        name, _, values = selector.removesuffix(")").partition(" in (")
        return labels.get(name) in values.split(",")
    if selector.startswith("!"):
        return selector[1:] not in labels
    name, equals, value = selector.partition("=")
    return not selector or (labels.get(name) == value if equals else name in labels)


def merge_patched(old: Any, new: Any, *, strategic: bool) -> Any:
    """A merge patch, and as much of a strategic one as gates need."""
    if not isinstance(new, Mapping) or not isinstance(old, Mapping):
        return new
    result = dict(old)
    for name, value in new.items():
        if name == "schedulingGates" and strategic:
            gone = {it["name"] for it in value if it.get("$patch") == "delete"}
            result[name] = [it for it in old[name] if it["name"] not in gone]
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patched(old.get(name), value, strategic=strategic)
    return result


def decoded_as(body: Json, wanted: Any) -> Any:
    """Decoded from its bytes, as everything comes."""
    return msgspec.json.decode(msgspec.json.encode(body), type=wanted)
