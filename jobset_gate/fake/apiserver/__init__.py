"""Kubernetes' HTTP API over an in-memory store, without authentication.

It serves what the demo and the fast tests need: verbs, watches, optimistic locking, admission webhooks, finalizers,
garbage collection, defaults and pruning. It does not validate schemas, evaluate CEL, serve kubectl, or track ownership
of fields below the second level: those are tested on the real API server.
"""

from jobset_gate.fake.apiserver.server import ApiServer
from jobset_gate.fake.apiserver.store import ObjectStore

__all__ = ["ApiServer", "ObjectStore"]
