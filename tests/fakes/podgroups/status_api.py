"""The status worker of pod groups at work on virtual time, against an API server in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from controllers.podgroups import crds
from controllers.podgroups.metrics import PodGroupMetrics
from controllers.podgroups.status import (
    STATUS_WORKERS,
    WRITE_BURST,
    WRITES_PER_SECOND,
    PodGroupEventWriter,
    PodGroupStatusReconciler,
    PodGroupStatusWriter,
)
from jobset_gate import names
from jobset_gate.kube.resources import CRDS, EVENTS
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.podgroups.status import group_status
from jobset_gate.runtime.controller import Controller, ControllerMetrics
from jobset_gate.runtime.flowcontrol import RateLimiter
from jobset_gate.runtime.workqueue import WorkQueue
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.background import in_background
from tests.fakes.podgroups.cluster import PLUGINS, InMemoryCluster
from tests.fakes.podgroups.objects import pod_group
from tests.fakes.podgroups.sources import Json


class StatusApi(InMemoryCluster):
    """With one PodGroup and its CRD."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.put(PLUGINS, pod_group())
        self.crd = self.put(CRDS, crds.manifest(names.PLUGINS_GROUP))

    @property
    def group(self) -> Json:
        return self.stored(PLUGINS, "team", "g")

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

    @property
    def log(self) -> list[tuple[str, Json]]:
        """Writes: "status", "annotations" or "event", and the body."""
        kinds = {"patch status": "status", "patch": "annotations", "create": "event"}
        return [(kinds[verb], body) for verb, _, _, body in self.writes]

    @property
    def events(self) -> list[Json]:
        return [*self.all(EVENTS)]

    def event_list(self) -> list[tuple[str, str]]:
        """(Reason, name of the object) of the Events so far."""
        return [(it["reason"], it["involvedObject"]["name"]) for it in self.events]

    def set_group(self, **fields: Any) -> None:
        self.patch_object(PLUGINS, "g", fields)


class StatusHarness:
    """A test says what the cache shows."""

    def __init__(self, api: StatusApi) -> None:
        clock = api.clock
        self.shown: dict[PodGroupKey, GroupSnapshot] = {}
        self._why: dict[PodGroupKey, GroupReason | None] = {}
        self._queue: WorkQueue[PodGroupKey] = WorkQueue()
        self._registry, limiter = CollectorRegistry(), RateLimiter(WRITES_PER_SECOND, WRITE_BURST)
        reconciler = PodGroupStatusReconciler(
            self.shown.get,
            lambda seen: group_status(seen, clock(), self._why[seen.group.key]),
            PodGroupStatusWriter(api.client, limiter, lambda *_: None, clock),
            PodGroupEventWriter(api.client, limiter, clock),
            metrics=PodGroupMetrics(self._registry),
            clock=clock,
        )
        metrics = ControllerMetrics(self._registry)
        self.loop = Controller("status", self._queue, reconciler.reconcile, metrics, workers=STATUS_WORKERS)

    def report_group(self, seen: GroupSnapshot, why: GroupReason | None = None) -> None:
        """The group was reconciled like this."""
        self.shown[seen.group.key], self._why[seen.group.key] = seen, why
        self._queue.add(seen.group.key)

    def forget_group(self, key: PodGroupKey) -> None:
        del self.shown[key]
        self._queue.add(key)

    @property
    def failures(self) -> float:
        """Reconciles that ended with an error."""
        return (
            self._registry.get_sample_value("controller_runtime_reconcile_errors_total", {"controller": "status"}) or 0
        )


@asynccontextmanager
async def status_harness(api: StatusApi) -> AsyncIterator[StatusHarness]:
    made = StatusHarness(api)
    async with in_background(made.loop.run()):
        yield made
