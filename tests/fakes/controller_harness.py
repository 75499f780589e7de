"""The parts of a controller of gangs, put together over an API in memory; the test drives each pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from prometheus_client import CollectorRegistry

from controllers.barrier.cache import GangCache
from controllers.barrier.live_reader import LiveReader
from controllers.barrier.lws_condition import LwsConditionWriter
from controllers.barrier.metrics import GangMetrics
from controllers.barrier.reconciler import GangReconciler
from controllers.barrier.status import GangStatusWriter
from controllers.barrier.stream.delivery import DeliveryLog
from controllers.barrier.stream.registry import WaiterRegistry
from controllers.barrier.verdict_patcher import VerdictPatcher
from controllers.barrier.verdict_store import VerdictStore
from jobset_gate.barrier.model import ConfigMapSeen, GangKey
from jobset_gate.runtime.store import Store
from jobset_gate.runtime.workqueue import WorkQueue
from jobset_gate.sources import decode
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.memory_api import Api
from tests.fakes.memory_client import MemoryClient
from tests.fakes.stored_objects import version_of


@dataclass
class ControllerHarness:
    """A controller without workers and watches."""

    api: Api
    memory: MemoryClient
    clock: VirtualClock
    asked: list[GangKey] = field(default_factory=list)
    source: ClassVar[str] = "jobset"
    key: ClassVar[GangKey] = GangKey("default", "train")

    def __post_init__(self) -> None:
        sent, client = DeliveryLog(), self.memory.client
        self.cache = GangCache(self.asked.append, lambda key, _: self.asked.append(key), sent)
        self.config_maps: Store[Any, ConfigMapSeen] = Store(decode.config_map)
        self.verdict_store = VerdictStore(client, self.cache, self.config_maps)
        self.waiters = WaiterRegistry(self.cache, self.clock, sent)
        self.patcher = VerdictPatcher(client, concurrency=1, delivered=sent)
        self.status_queue: WorkQueue[GangKey] = WorkQueue()
        self.status = GangStatusWriter(
            client,
            self.clock,
            self.status_queue,
            version=version_of(self.api),
            annotate=self.verdict_store.annotate_condition,
            shared=self.shared_condition(),
        )
        self.reconciler = GangReconciler(
            cache=self.cache,
            verdict_store=self.verdict_store,
            waiters=self.waiters,
            patcher=self.patcher,
            status=self.status,
            live_reader=LiveReader(client),
            metrics=GangMetrics(CollectorRegistry(), sources=[self.source]),
            now=self.clock,
        )

    def shared_condition(self) -> LwsConditionWriter | None:
        """None where each gang has its own."""
        return None
