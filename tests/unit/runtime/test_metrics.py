"""The metrics of the machinery have the names, types and labels that client-go and controller-runtime give theirs."""

import asyncio
from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from controllers.barrier.crd_patcher import CrdMetrics
from jobset_gate import names
from jobset_gate.runtime.controller import Controller, ControllerMetrics
from jobset_gate.runtime.metrics import RuntimeMetrics
from jobset_gate.runtime.workqueue import WorkQueue
from tests.fakes.background import in_background

KNOWN: Mapping[str, tuple[str, set[str]]] = {
    "workqueue_depth": ("gauge", {"name", "controller"}),
    "workqueue_adds_total": ("counter", {"name", "controller"}),
    "workqueue_queue_duration_seconds": ("histogram", {"name", "controller"}),
    "workqueue_work_duration_seconds": ("histogram", {"name", "controller"}),
    "workqueue_unfinished_work_seconds": ("gauge", {"name", "controller"}),
    "workqueue_longest_running_processor_seconds": ("gauge", {"name", "controller"}),
    "workqueue_retries_total": ("counter", {"name", "controller"}),
    "rest_client_requests_total": ("counter", {"code", "method", "host"}),
    "rest_client_request_duration_seconds": ("histogram", {"verb", "host"}),
    "leader_election_master_status": ("gauge", {"name"}),
    "controller_runtime_reconcile_total": ("counter", {"controller", "result"}),
    "controller_runtime_reconcile_errors_total": ("counter", {"controller"}),
    "controller_runtime_reconcile_panics_total": ("counter", {"controller"}),
    "controller_runtime_reconcile_time_seconds": ("histogram", {"controller"}),
    "controller_runtime_active_workers": ("gauge", {"controller"}),
    "controller_runtime_max_concurrent_reconciles": ("gauge", {"controller"}),
}
OURS = {"rest_client_requests_total": {"resource"}}


class MetricsHarness:
    """All of it at work, and what a scrape would show."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = RuntimeMetrics(self.registry, "https://10.0.0.1:6443", names.LEASE)
        self.queue: WorkQueue[str] = self.metrics.new_queue("gang")
        self.controller = Controller("gang", self.queue, self.reconcile, ControllerMetrics(self.registry), workers=3)

    async def reconcile(self, key: str) -> float | None:
        if key == "bad":
            raise ValueError("a bug")
        await asyncio.sleep(2)
        return None

    async def work(self, *keys: str) -> None:
        async with in_background(self.controller.run()):
            for key in keys:
                self.queue.add(key)
            await asyncio.sleep(1)
            self.metrics.observe_request("list", "pods", "200", 0.3)
            self.metrics.observe_request("patch", "pods", "<error>", 0.3)
            await asyncio.sleep(9)

    def value(self, name: str, /, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)


@pytest.fixture
def harness() -> MetricsHarness:
    return MetricsHarness()


async def test_every_name_has_its_type_and_its_labels(harness: MetricsHarness) -> None:
    await harness.work("a", "bad")
    found = {}
    for family in text_string_to_metric_families(generate_latest(harness.registry).decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        found[name] = (family.type, labels - OURS.get(name, set()))
    assert {name: it for name, it in found.items() if name in KNOWN} == KNOWN


async def test_methods_are_those_of_http_and_the_host_is_the_api_servers(harness: MetricsHarness) -> None:
    await harness.work()
    where = {"host": "10.0.0.1:6443", "resource": "pods"}
    assert harness.value("rest_client_requests_total", code="200", method="GET", **where) == 1
    assert harness.value("rest_client_requests_total", code="<error>", method="PATCH", **where) == 1
    assert harness.value("rest_client_request_duration_seconds_sum", verb="GET", host="10.0.0.1:6443") == 0.3


def test_every_result_and_the_leadership_is_zero_before_the_first(harness: MetricsHarness) -> None:
    for result in ("success", "error", "requeue", "requeue_after"):
        assert harness.value("controller_runtime_reconcile_total", controller="gang", result=result) == 0
    assert harness.value("controller_runtime_max_concurrent_reconciles", controller="gang") == 3
    assert harness.value("leader_election_master_status", name=names.LEASE) == 0
    harness.metrics.set_leading(True)
    assert harness.value("leader_election_master_status", name=names.LEASE) == 1


@pytest.mark.parametrize(("outcome", "missing"), [("extended", 0), ("forbidden", 1), ("not installed", 0)])
def test_a_field_that_may_not_be_added_is_missing(harness: MetricsHarness, outcome: str, missing: int) -> None:
    passes = CrdMetrics(harness.registry)
    passes.observe_pass("forbidden")
    passes.observe_pass(outcome)
    assert harness.value("jobset_gate_crd_field_missing") == missing
    assert harness.value("jobset_gate_crd_passes_total", outcome=outcome.replace(" ", "_")) in (1, 2)
