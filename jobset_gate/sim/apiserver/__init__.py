"""The embedded API server: Kubernetes' HTTP API over an in-memory store, for tests, the demo and the benches."""

from jobset_gate.sim.apiserver.server import ApiServer
from jobset_gate.sim.apiserver.store import ObjectStore

__all__ = ["ApiServer", "ObjectStore"]
