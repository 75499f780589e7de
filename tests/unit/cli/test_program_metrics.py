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


def test_a_scrape_names_the_build_measures_the_process_and_has_no_second_series_for_counters() -> None:
    registry = CollectorRegistry()
    process.register_metrics(registry, "webhook")
    labels = {"component": "webhook", "version": version("jobset-gate"), "python": platform.python_version()}
    assert registry.get_sample_value("jobset_gate_build_info", labels) == 1
    assert (registry.get_sample_value("process_resident_memory_bytes") or 0) > 1_000_000
    assert (registry.get_sample_value("process_open_fds") or 0) > 2
    Counter("done_total", "Things done.", registry=registry).inc()
    assert b"done_total 1.0" in generate_latest(registry)
    assert b"_created" not in generate_latest(registry)
