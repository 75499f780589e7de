"""The embedded API server: Kubernetes' HTTP API over an in-memory store, for tests, the demo and the benches."""

from jobset_gate.fake.apiserver.server import ApiServer
from jobset_gate.fake.apiserver.store import ObjectStore

__all__ = ["ApiServer", "ObjectStore"]
