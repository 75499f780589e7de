"""What a scrape says of the program itself."""

import platform
from collections.abc import Iterator
from importlib.metadata import version

import prometheus_client
import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

from jobset_gate.cli.serve import process


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    prometheus_client.enable_created_metrics()  # type: ignore[no-untyped-call]


def test_the_build_is_reported() -> None:
    registry = CollectorRegistry()
    process.register_metrics(registry, "webhook")
    labels = {"component": "webhook", "version": version("jobset-gate"), "python": platform.python_version()}
    assert registry.get_sample_value("jobset_gate_build_info", labels) == 1


def test_the_process_is_measured() -> None:
    registry = CollectorRegistry()
    process.register_metrics(registry, "controller")
    memory = registry.get_sample_value("process_resident_memory_bytes")
    assert memory is not None
    assert memory > 1_000_000
    assert (registry.get_sample_value("process_open_fds") or 0) > 2


def test_counters_come_without_a_second_series_that_dashboards_do_not_know() -> None:
    registry = CollectorRegistry()
    process.register_metrics(registry, "controller")
    Counter("done_total", "Things done.", registry=registry).inc()
    assert b"done_total 1.0" in generate_latest(registry)
    assert b"_created" not in generate_latest(registry)
