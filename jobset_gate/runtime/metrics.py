"""Metrics of queues, requests, watches and the lease, under the names that existing dashboards know.

workqueue_*, rest_client_* and leader_election_* with the names, types and labels that client-go and controller-runtime
give them; a further label of ours (`resource`) does not disturb a sum.
"""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from jobset_gate.kube.transport import METHODS
from jobset_gate.runtime.decoder import WatchProblem
from jobset_gate.runtime.workqueue import QueueMetrics, WorkQueue

K = TypeVar("K", bound=Hashable)
M = TypeVar("M", Counter, Gauge, Histogram)

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

_log = structlog.get_logger(__name__)


class RuntimeMetrics:
    """Counters for queues, requests, watches and the lease, in a registry."""

    def __init__(self, registry: CollectorRegistry, server: str = "", lease: str = "") -> None:
        """`server`: the API server's URL, for the label `host`; `lease`: the Lease's name, for the label `name`."""

        def of_queue(name: str, text: str, kind: Callable[..., M], **more: Any) -> M:
            return kind(f"workqueue_{name}", text, ["name", "controller"], registry=registry, **more)

        self._adds = of_queue("adds_total", "Keys added.", Counter)
        self._retries = of_queue("retries_total", "Keys requeued after a failure.", Counter)
        self._depth = of_queue("depth", "Keys that wait for a worker.", Gauge)
        self._unfinished = of_queue("unfinished_work_seconds", "Time of all work under way.", Gauge)
        self._longest = of_queue("longest_running_processor_seconds", "The longest work under way.", Gauge)
        self._waited = of_queue("queue_duration_seconds", "Wait for a worker.", Histogram, buckets=_SECONDS)
        self._worked = of_queue("work_duration_seconds", "Reconciling a key.", Histogram, buckets=_SECONDS)
        self._host = urlsplit(server).netloc
        self._requests = Counter(
            "rest_client_requests_total",
            "Requests to the API server; <error> is one without an answer.",
            ["code", "method", "host", "resource"],
            registry=registry,
        )
        self._request_seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Requests to the API server, watches to their first byte.",
            ["verb", "host"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._problems = Counter(
            "jobset_gate_watch_problems_total",
            "Problems of lists and watches that the informers handled.",
            ["resource", "kind"],
            registry=registry,
        )
        leader = Gauge("leader_election_master_status", "1 while this replica leads.", ["name"], registry=registry)
        self._leader = leader.labels(lease)
        self._leader.set(0)

    def new_queue(self, name: str, *, elected: bool = True) -> "WorkQueue[K]":
        """A queue with metrics under this name."""
        adds, retries = self._adds.labels(name, name), self._retries.labels(name, name)
        waited, worked = self._waited.labels(name, name), self._worked.labels(name, name)
        metrics = QueueMetrics(adds.inc, retries.inc, waited.observe, worked.observe)
        queue: WorkQueue[K] = WorkQueue(metrics=metrics, elected=elected)
        self._depth.labels(name, name).set_function(lambda: queue.depth)
        self._unfinished.labels(name, name).set_function(lambda: queue.unfinished_seconds)
        self._longest.labels(name, name).set_function(lambda: queue.longest_running_seconds)
        return queue

    def observe_request(self, verb: str, resource: str, code: str, seconds: float) -> None:
        """After each request; `observe` of kube.Client."""
        method = METHODS.get(verb, "GET")
        self._requests.labels(code, method, self._host, resource).inc()
        self._request_seconds.labels(method, self._host).observe(seconds)

    def observe_watch_problem(self, problem: WatchProblem) -> None:
        """`on_problem` of an Informer."""
        self._problems.labels(problem.resource.plural, problem.kind.value).inc()
        _log.warning("watch problem", resource=problem.resource.plural, kind=problem.kind.value, detail=problem.detail)

    def set_leading(self, leads: bool) -> None:
        """This replica acquired or lost the lease; `on_status` of the LeaderElector."""
        self._leader.set(1 if leads else 0)

    def log_lease_problem(self, what: str) -> None:
        """An attempt to acquire or renew failed; `on_problem` of the LeaderElector."""
        _log.warning("lease problem", detail=what)
