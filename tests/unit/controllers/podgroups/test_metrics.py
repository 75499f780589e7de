"""Metrics of pod groups: what a scrape can distinguish."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from controllers.podgroups.metrics import PodGroupMetrics

BOUNDS = ("0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "+Inf")


@pytest.mark.parametrize(
    ("seconds", "bound"), [(0.0005, "0.001"), (0.003, "0.005"), (0.08, "0.1"), (2.0, "2.5"), (9.0, "+Inf")]
)
def test_passes_of_a_millisecond_and_of_seconds_are_in_buckets_of_their_own(seconds: float, bound: str) -> None:
    """A pass is mostly some milliseconds; one that takes seconds holds up every other group."""
    registry = CollectorRegistry()
    PodGroupMetrics(registry).cycle_seconds.observe(seconds)
    found = [registry.get_sample_value("jobset_gate_group_decision_seconds_bucket", {"le": it}) for it in BOUNDS]
    assert found == [0.0 if BOUNDS.index(it) < BOUNDS.index(bound) else 1.0 for it in BOUNDS]
