"""A trace of each gang reaches a collector over OTLP/HTTP.

Of one that is down: tests/unit/cli/test_trace_exporter.py.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import pytest

from jobset_gate.cli.serve.trace_exporter import OTLPTraceExporter
from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.kubelet import FakeNode
from tests.fakes.eventually import eventually
from tests.fakes.otlp_collector import OtlpCollector, ShownSpan
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import Environment, barrier, held

pytestmark = pytest.mark.parametrize("plane", ["embedded"], indirect=True)


async def late_pod(stage: Environment) -> None:
    """Two pods of three start, then the third gets a node, and all run."""
    await stage.create(manifests.gang("train", jobs=1, pods=3))
    early = [
        datetime.fromisoformat(barrier(pod)["running"]["startedAt"]) for pod in await stage.until_held(2) if held(pod)
    ]

    async def is_late() -> bool:
        return datetime.now(UTC) >= max(early) + timedelta(seconds=1)

    await eventually(is_late)  # statuses have whole seconds
    await stage.actors.kubelets.add_node(FakeNode(f"{stage.namespace}-late", pods=1))
    await stage.until_running(3)


def below(trace: list[ShownSpan], parent: ShownSpan) -> set[str]:
    return {it.name for it in trace if it.parent_id == parent.span_id}


async def test_a_gang_with_a_late_pod_is_one_trace_that_links_to_that_pod(
    make_stage: MakeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        collector = await stack.enter_async_context(OtlpCollector())
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=team-a")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "gates-of-team-a")
        exporter = OTLPTraceExporter(None, "1.2.3", "replica-0")
        stack.push_async_callback(asyncio.to_thread, exporter.stop)
        stage = await stack.enter_async_context(make_stage(controller=False, nodes=(FakeNode("early", pods=2),)))
        stage.start_controller(traces=exporter)
        await late_pod(stage)
        trace = await collector.trace_of("train")
    root = trace[0]
    assert (root.name, root.parent_id, root.error) == ("gang", "", None)
    assert root.tags["k8s.namespace.name"] == stage.namespace
    assert root.tags["jobset_gate.cause"] == "AllPodsStarted"
    assert root.tags["jobset_gate.pods.started"] == root.tags["jobset_gate.pods.expected"] == 3
    stages = {"created", "scheduled", "started", "decided", "released", "running"}
    pods = {f"pod workers-0/{number}" for number in range(3)}
    assert stages | pods <= below(trace, root)
    slowest = next(it for it in trace if it.span_id == root.references[0])
    assert slowest.tags["k8s.node.name"] == f"{stage.namespace}-late"
    assert "waiting for a node" in below(trace, slowest)
    assert {"created", "scheduled", "started", "released", "running"} <= set(slowest.logs)
    assert all(root.start <= it.start <= it.end <= root.end for it in trace)
    assert collector.headers[0]["x-tenant"] == "team-a"
    assert collector.services[0]["service.name"] == "gates-of-team-a"
    assert collector.services[0]["service.version"] == "1.2.3"
