"""Where words about groups are put up: PodGroups, CRDs and Events in memory, and heralds at work on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from prometheus_client import CollectorRegistry

from controllers.podgroups.metrics import PodGroupMetrics
from controllers.podgroups.status import (
    STATUS_WORKERS,
    WRITE_BURST,
    WRITES_PER_SECOND,
    PodGroupEventWriter,
    PodGroupStatusReconciler,
)
from controllers.podgroups.status_writer import PodGroupStatusWriter
from jobset_gate import names
from jobset_gate.fake.clock import VirtualClock
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, KubeError, NotFound
from jobset_gate.kube.resources import CONFIGMAPS, CRDS, EVENTS, POD_GROUPS, Resource
from jobset_gate.podgroups import crds
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.podgroups.status import group_status
from jobset_gate.runtime.controller import Controller, ControllerMetrics
from jobset_gate.runtime.rate_limiter import RateLimiter
from jobset_gate.runtime.workqueue import WorkQueue
from tests.fakes.podgroups.objects import pod_group
from tests.fakes.podgroups.sources import Json


class StatusApi:
    """The API server, as far as heralds speak to it. `writes` is the log: verb, kind or subresource, and what."""

    def __init__(self) -> None:
        self.group = pod_group(version="5")
        self.map: Json | None = None
        self.crd: Json | None = crds.manifest(names.PLUGINS_GROUP)
        self.events: list[Json] = []
        self.writes: list[tuple[str, Json]] = []
        self.tries: list[str] = []
        """What was asked for, in vain or not."""
        self.fail: Callable[[str], KubeError | None] = lambda _: None

    @property
    def client(self) -> Client:
        return cast("Client", self)

    @property
    def status(self) -> Json:
        found: Json = self.group.get("status", {})
        return found

    @property
    def condition(self) -> Json:
        found: Json = next(iter(self.status.get("conditions", [])), {})
        return found

    @property
    def notes(self) -> Json:
        found: Json = self.group["metadata"].get("annotations") or {}
        return found

    def event_list(self) -> list[tuple[str, str]]:
        """(reason, name of the object) of the Events so far."""
        return [(it["reason"], it["involvedObject"]["name"]) for it in self.events]

    def write_as_other(self, **status: Any) -> None:
        """Another controller writes the status."""
        _merge(self.group, {"status": status})
        self._changed(self.group)

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Json:
        await asyncio.sleep(0)
        if resource in POD_GROUPS.values():
            return self.group
        assert resource == CRDS
        if self.crd is None:
            raise Forbidden(403, "Forbidden", "no right to get CRDs")
        return self.crd

    async def create(self, resource: Resource, body: Json, namespace: str | None = None) -> Json:
        self._try("event")
        assert resource == EVENTS
        if any(it["metadata"]["name"] == body["metadata"]["name"] for it in self.events):
            raise AlreadyExists(409, "AlreadyExists", "there")
        self.events.append(body)
        self.writes.append(("event", body))
        return body

    async def patch(
        self, resource: Resource, name: str, namespace: str, *, body: Json, subresource: str | None = None, **_: Any
    ) -> Json:
        what = subresource or "annotations"
        self._try(what)
        found = self.map if resource == CONFIGMAPS else self.group
        assert resource == CONFIGMAPS or resource in POD_GROUPS.values()
        if found is None:
            raise NotFound(404, "NotFound", name)
        wanted, meta = body["metadata"], found["metadata"]
        if subresource is None and wanted["uid"] != meta["uid"]:
            causes = [{"field": "metadata.uid", "message": "field is immutable"}]
            raise Invalid(422, "Invalid", "another", details={"causes": causes})
        if wanted.get("resourceVersion") not in (None, meta["resourceVersion"]):
            raise Conflict(409, "Conflict", "changed")
        assert set(body) == {"metadata", *([subresource] if subresource else [])}
        _merge(found, body)
        self._changed(found)
        self.writes.append((what, body))
        return found

    def _try(self, what: str) -> None:
        self.tries.append(what)
        error = self.fail(what)
        if error is not None:
            raise error

    def _changed(self, found: Json) -> None:
        found["metadata"]["resourceVersion"] = str(int(found["metadata"]["resourceVersion"]) + 1)


class StatusHarness:
    """The status worker at work; a test says what its cache shows."""

    def __init__(self, board: StatusApi, clock: VirtualClock) -> None:
        self.board, self.clock, self.failures = board, clock, 0
        self.shown: dict[PodGroupKey, GroupSnapshot] = {}
        self._why: dict[PodGroupKey, GroupReason | None] = {}
        registry, limiter = CollectorRegistry(), RateLimiter(WRITES_PER_SECOND, WRITE_BURST)
        self._queue: WorkQueue[PodGroupKey] = WorkQueue()
        reconciler = PodGroupStatusReconciler(
            self.shown.get,
            lambda seen: group_status(seen, clock(), self._why[seen.group.key]),
            PodGroupStatusWriter(board.client, clock),
            PodGroupEventWriter(board.client, limiter, clock),
            limiter,
            metrics=PodGroupMetrics(registry, clock),
            on_error=self._failed,
            clock=clock,
        )
        metrics = ControllerMetrics(registry)
        self.loop = Controller("status", self._queue, reconciler.reconcile, metrics, workers=STATUS_WORKERS)

    def report_group(self, seen: GroupSnapshot, why: GroupReason | None = None) -> None:
        """The group was reconciled like this."""
        self.shown[seen.group.key], self._why[seen.group.key] = seen, why
        self._queue.add(seen.group.key)

    def forget_group(self, key: PodGroupKey) -> None:
        """The group is gone."""
        del self.shown[key]
        self._queue.add(key)

    def _failed(self) -> None:
        self.failures += 1


@asynccontextmanager
async def status_harness(board: StatusApi, clock: VirtualClock) -> AsyncIterator[StatusHarness]:
    """At work while the block runs."""
    made = StatusHarness(board, clock)
    running = asyncio.create_task(made.loop.run())
    try:
        yield made
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def _merge(found: Json, body: Json) -> None:
    """A merge patch; UID and resourceVersion in it are preconditions only."""
    for key, value in body.items():
        if isinstance(value, dict):
            _merge(found.setdefault(key, {}), value)
        elif value is None:
            found.pop(key, None)
        else:
            found[key] = value
