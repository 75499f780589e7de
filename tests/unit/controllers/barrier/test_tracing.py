"""Which traces a controller makes, and when: of a release once its pods run, of a timeout at once, none for ever."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controllers.barrier import tracing
from controllers.barrier.cache import GangCache
from controllers.barrier.tracing import POLL_SECONDS, SETTLE_SECONDS, GangTracer
from jobset_gate import names
from jobset_gate.barrier.decision import Decide
from jobset_gate.barrier.model import BarrierStage, DesiredCondition, GangKey, VerdictKind, WorkloadSeen
from jobset_gate.kube.errors import ServerError
from jobset_gate.kube.resources import PODS
from jobset_gate.runtime.store import ObjectChange
from jobset_gate.runtime.workqueue import WorkQueue
from jobset_gate.timeline.trace import Trace
from tests.fakes import gangs
from tests.fakes.call_blocker import CallBlocker
from tests.fakes.gangs import T0, decided
from tests.fakes.memory_api import Api
from tests.fakes.memory_client import MemoryClient
from tests.fakes.present import present
from tests.fakes.start_group_controller import RING, RUNS, SPACE, member, read_member
from tests.fakes.wire_objects import TEN_O_CLOCK, owner

KEY = GangKey("default", "train")


class TracerHarness:
    """A tracer at a time that the test sets, and the traces that it exported."""

    def __init__(self, client: MemoryClient) -> None:
        self.now = T0
        self.cache = GangCache(lambda _: None, lambda _, __: None)
        self.queue: WorkQueue[GangKey] = WorkQueue()
        self.traces: list[Trace] = []
        self.tracer = GangTracer(self.cache, client.client, self.queue, self, lambda: self.now)

    def export(self, trace: Trace) -> None:
        self.traces.append(trace)

    def stop(self) -> None:
        """Nothing is queued."""

    def decide(self, kind: VerdictKind = VerdictKind.RELEASE, **jobset: Any) -> WorkloadSeen:
        """A verdict on a gang of two pods that wait in their barrier."""
        seen = gangs.jobset(**jobset)
        self.cache.on_workload(ObjectChange(KEY[:2], None, seen))
        for index in range(2):
            self.set_pod(index, main_since=None)
        cause = names.REASON_STARTED if kind is VerdictKind.RELEASE else names.REASON_TIMED_OUT
        verdict = gangs.verdict(kind, cause, attempt=seen.attempt)
        snapshot = present(self.cache.peek(KEY))
        condition = DesiredCondition(status="True", reason=cause, message="")
        self.tracer.on_decided(KEY, snapshot, Decide(verdict=verdict, clock=gangs.clock(), condition=condition))
        return seen

    def set_pod(self, index: int, main_since: float | None) -> None:
        stage = BarrierStage.RUNNING if main_since is None else BarrierStage.PASSED
        pod = gangs.pod(index, main_since=main_since, stage=stage)
        self.cache.on_pod(ObjectChange(("default", pod.name), None, pod))


@pytest.fixture
def harness(memory: MemoryClient) -> TracerHarness:
    return TracerHarness(memory)


async def test_a_release_is_traced_once_when_all_pods_run(harness: TracerHarness) -> None:
    harness.decide()
    assert await harness.tracer.reconcile(KEY) == POLL_SECONDS
    harness.set_pod(0, main_since=T0 + 1)
    assert await harness.tracer.reconcile(KEY) == POLL_SECONDS
    harness.set_pod(1, main_since=T0 + 2)
    assert harness.traces == []
    for _ in range(2):
        assert await harness.tracer.reconcile(KEY) is None
    assert len(harness.traces) == 1


async def test_a_timeout_is_traced_at_once(harness: TracerHarness) -> None:
    harness.decide(VerdictKind.TIMEOUT)
    assert await harness.tracer.reconcile(KEY) is None
    assert "timeout" in harness.traces[0].spans[0].attributes.values()


async def test_a_gang_that_was_restarted_or_deleted_meanwhile_is_traced_as_it_was_decided(
    harness: TracerHarness,
) -> None:
    seen = harness.decide()
    harness.cache.on_workload(ObjectChange(KEY[:2], seen, msgspec.structs.replace(seen, attempt=1)))
    assert await harness.tracer.reconcile(KEY) is None
    harness.decide()
    harness.cache.on_workload(ObjectChange(KEY[:2], seen, None))
    assert await harness.tracer.reconcile(KEY) is None
    assert [it.spans[0].attributes["jobset_gate.attempt"] for it in harness.traces] == [0, 0]


async def test_the_trace_of_a_start_group_has_its_pods_and_no_namesakes(harness: TracerHarness, api: Api) -> None:
    other = owner("Job", "other", "other")
    for body in (member("a", RUNS), member("b", RUNS), member("c", RUNS, ownerReferences=[other])):
        api.put(PODS, body)
        harness.cache.on_pod(ObjectChange((SPACE, body["metadata"]["name"]), None, read_member(body)))
    seen = present(harness.cache.peek(RING))
    decision = decided(Decide, seen, TEN_O_CLOCK + 60)
    harness.now = TEN_O_CLOCK + 60
    harness.tracer.on_decided(RING, seen, decision)
    harness.now += SETTLE_SECONDS
    await harness.tracer.reconcile(RING)
    (trace,) = harness.traces
    assert {it.attributes["k8s.pod.name"] for it in trace.spans if "k8s.pod.name" in it.attributes} == {"a", "b"}


async def test_pods_that_cannot_be_listed_are_listed_again_and_not_for_ever(
    harness: TracerHarness, api_calls: CallBlocker
) -> None:
    api_calls.fail = lambda _: ServerError(500)
    harness.decide(VerdictKind.TIMEOUT)
    assert await harness.tracer.reconcile(KEY) == POLL_SECONDS
    harness.now += SETTLE_SECONDS
    for _ in range(2):
        assert await harness.tracer.reconcile(KEY) is None
    assert harness.traces == []


async def test_only_so_many_gangs_wait_for_their_trace(harness: TracerHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "MAX_PENDING", 0)
    harness.decide(VerdictKind.TIMEOUT)
    assert await harness.tracer.reconcile(KEY) is None
    assert harness.traces == []
