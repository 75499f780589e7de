"""What the manager provides to all controllers of one replica."""

from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from jobset_gate.kube.client import Client
from jobset_gate.runtime.controller import ControllerMetrics
from jobset_gate.runtime.metrics import RuntimeMetrics


@dataclass(frozen=True, slots=True)
class ControllerDependencies:
    client: Client
    writer: Client
    """Checks before each write that this process leads."""
    namespace: str | None
    """The only one that is watched; None: all."""
    clock: Callable[[], float]
    """Unix time."""
    registry: CollectorRegistry
    runtime: RuntimeMetrics
    metrics: ControllerMetrics
