"""Kubernetes' HTTP API over an in-memory store, without authentication.

It serves what the demo and the fast tests need: verbs, watches, optimistic locking, admission webhooks, finalizers,
garbage collection in the background, defaults and pruning. It refuses neither invalid objects nor malformed requests,
cuts no list into pages, evaluates no CEL, does not serve kubectl, and knows no owners of fields: those are tested on
the real API server.
"""

from jobset_gate_demo.fake.apiserver.server import ApiServer

__all__ = ["ApiServer"]
