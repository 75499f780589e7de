"""A cache of pod groups, filled with stored objects through the selectors and stores of its informers."""

from __future__ import annotations

from typing import Any, Self

from controllers.podgroups import informers
from controllers.podgroups.cache import PodGroupCache
from jobset_gate import names
from jobset_gate.kube.resources import CONFIGMAPS, NODES, POD_GROUPS, PODS, RESOURCEQUOTAS, Resource
from jobset_gate.podgroups.model import MergedGroup, PodGroupKey
from jobset_gate.podgroups.snapshot import GroupSnapshot, RecordRef
from jobset_gate.runtime.informer import AnyWatchSource
from jobset_gate.runtime.store import ObjectChange, ObjectVersion, Store
from jobset_gate.settings import Groups
from tests.fakes.podgroups.sources import Json
from tests.fakes.wire_objects import decoded

Name = tuple[str, str]

SELECTED_BY_LABEL = "jobset-gate.dev/gang"


def later(body: Json, version: str = "200", **parts: Json) -> Json:
    """The same object some time on."""
    made = {part: body[part] | parts.get(part, {}) for part in ("metadata", "spec", "status") if part in body}
    made["metadata"] = made["metadata"] | {"resourceVersion": version}
    return body | made


class FilledCache:
    """Objects go in as they are stored; effects come out."""

    def __init__(self, settings: Groups | None = None, namespace: str | None = None) -> None:
        self.effects: list[tuple[PodGroupKey | None, bool]] = []
        self.settings = settings or Groups()
        self.cache = PodGroupCache(self.settings)
        self.cache.subscribe(lambda key, urgent: self.effects.append((key, urgent)))
        kinds = informers.watch_sources(self.cache, self.settings, namespace)
        self.feeds = [InformerFeed(kind) for kind in kinds]

    def put(self, resource: Resource, *bodies: Json) -> Self:
        """Informers deliver objects as they are now."""
        for body in bodies:
            for feed in self._of(resource):
                feed.put(body)
        return self

    def remove(self, resource: Resource, *bodies: Json) -> None:
        """Informers deliver their deletion."""
        for body in bodies:
            for feed in self._of(resource):
                feed.remove(body)

    def respond(self, resource: Resource, body: Json) -> None:
        """The API server returns an object to a read or write of ours, ahead of its informer."""
        (feed,) = self._of(resource)
        item = decoded(body, feed.kind.wire)
        found = feed.store.observe_object(item)
        self.cache.set_record_object((resource.group, item.metadata.namespace, item.metadata.name), found)

    def pods(self, *bodies: Json) -> Self:
        return self.put(PODS, *bodies)

    def pod_groups(self, *bodies: Json, api: str = names.PLUGINS_GROUP) -> Self:
        return self.put(POD_GROUPS[api], *bodies)

    def records(self, *bodies: Json) -> Self:
        return self.put(CONFIGMAPS, *bodies)

    def nodes(self, *bodies: Json) -> Self:
        return self.put(NODES, *bodies)

    def quotas(self, *bodies: Json) -> Self:
        return self.put(RESOURCEQUOTAS, *bodies)

    def snapshot(self, key: PodGroupKey) -> GroupSnapshot:
        found = self.cache.snapshot(key)
        assert found is not None
        return found

    def ref(self, key: PodGroupKey) -> RecordRef:
        found = self.snapshot(key).record_ref
        assert found is not None
        return found

    def group(self, key: PodGroupKey) -> MergedGroup:
        return self.snapshot(key).group

    def keys(self) -> set[PodGroupKey]:
        return set(self.cache.keys())

    def take_calls(self) -> tuple[set[PodGroupKey], set[PodGroupKey | None]]:
        """The groups that have changed since the last time, and those (None: capacity) of urgent changes."""
        effects, self.effects = self.effects, []
        return {key for key, _ in effects if key is not None}, {key for key, urgent in effects if urgent}

    def _of(self, resource: Resource) -> list[InformerFeed]:
        return [feed for feed in self.feeds if feed.kind.resource == resource]


class InformerFeed:
    """One informer without its network: the objects that its selectors let through, and its cache."""

    def __init__(self, kind: AnyWatchSource) -> None:
        self.kind = kind
        self.store: Store[Any, Any] = Store(kind.convert)

    def put(self, body: Json) -> None:
        item = self._decoded(body)
        if not self._selects(body):
            self._tell(self.store.remove(item.metadata))
        else:
            self._tell(self.store.put(item))

    def remove(self, body: Json) -> None:
        self._tell(self.store.remove(self._decoded(body).metadata))

    def relist(self, bodies: list[Json], version: str) -> None:
        """All there is, in one step."""
        listed: dict[Name, tuple[ObjectVersion, Any]] = {}
        self.store.begin_list()
        for body in filter(self._selects, bodies):
            item = self._decoded(body)
            listed[item.metadata.namespace, item.metadata.name] = self.store.listed(item)
        for change in self.store.replace(listed, version):
            self.kind.handler(change)

    def _decoded(self, body: Json) -> Any:
        return decoded(body, self.kind.wire)

    def _tell(self, change: ObjectChange[Any] | None) -> None:
        if change is not None:
            self.kind.handler(change)

    def _selects(self, body: Json) -> bool:
        """As the API server would."""
        if self.kind.namespace not in (None, body["metadata"].get("namespace", "")):
            return False
        if self.kind.label_selector in (SELECTED_BY_LABEL, f"!{SELECTED_BY_LABEL}"):
            has, wanted = SELECTED_BY_LABEL in body["metadata"].get("labels", {}), self.kind.label_selector[0] != "!"
            if has is not wanted:
                return False
        if self.kind.field_selector:
            finished = body["status"].get("phase") in ("Succeeded", "Failed")
            return bool(body["spec"].get("nodeName")) and not finished
        return True
