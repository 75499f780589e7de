"""The metrics of the machinery under the names that existing dashboards know.

workqueue_*, rest_client_* and leader_election_* as client-go has them.
"""

from collections.abc import Hashable
from typing import TypeVar

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controllers.queue import WorkQueue
from jobset_gate import names
from jobset_gate.kube.problems import Problem

K = TypeVar("K", bound=Hashable)

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

_log = structlog.get_logger(__name__)


class Plumbing:
    """Counters for queues, requests, watches and the lease, in a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._adds = Counter("workqueue_adds_total", "Keys added.", ["name"], registry=registry)
        self._retries = Counter("workqueue_retries_total", "Keys given back.", ["name"], registry=registry)
        self._depth = Gauge("workqueue_depth", "Keys that wait for a worker.", ["name"], registry=registry)
        self._unfinished = Gauge(
            "workqueue_unfinished_work_seconds", "Time of all work under way.", ["name"], registry=registry
        )
        self._longest = Gauge(
            "workqueue_longest_running_processor_seconds", "Longest work under way.", ["name"], registry=registry
        )
        self._waited = Histogram(
            "workqueue_queue_duration_seconds", "Wait for a worker.", ["name"], buckets=_SECONDS, registry=registry
        )
        self._worked = Histogram(
            "workqueue_work_duration_seconds", "Work on a key.", ["name"], buckets=_SECONDS, registry=registry
        )
        self._requests = Counter(
            "rest_client_requests_total",
            "Requests to the API server.",
            ["method", "code", "resource"],
            registry=registry,
        )
        self._request_seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Requests to the API server, watches to their first byte.",
            ["verb"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._problems = Counter(
            "jobset_gate_watch_problems_total",
            "What went wrong with lists and watches and was dealt with.",
            ["resource", "kind"],
            registry=registry,
        )
        self._leader = Gauge(
            "leader_election_master_status", "1 while this replica leads.", ["name"], registry=registry
        )
        self._leader.labels(names.LEASE).set(0)

    def queue(self, name: str) -> "WorkQueue[K]":
        """A queue that is measured under this name."""
        queue: WorkQueue[K] = WorkQueue(metrics=_QueueMetrics(self, name))
        self._depth.labels(name).set_function(lambda: queue.depth)
        self._unfinished.labels(name).set_function(lambda: queue.unfinished_seconds)
        self._longest.labels(name).set_function(lambda: queue.longest_running_seconds)
        return queue

    def request(self, verb: str, resource: str, code: str, seconds: float) -> None:
        """One request is over; the hook of kube.Client."""
        self._requests.labels(verb, code, resource).inc()
        self._request_seconds.labels(verb).observe(seconds)

    def problem(self, problem: Problem) -> None:
        """An informer had trouble; the hook of kube.Informer."""
        self._problems.labels(problem.resource.plural, problem.kind.value).inc()
        _log.warning("watch trouble", resource=problem.resource.plural, kind=problem.kind.value, detail=problem.detail)

    def leading(self, leads: bool) -> None:
        """This replica gained or lost the lease; the hook of kube.LeaderElector."""
        self._leader.labels(names.LEASE).set(1 if leads else 0)

    def lease_trouble(self, what: str) -> None:
        """An attempt on the lease failed; the hook of kube.LeaderElector."""
        _log.warning("lease trouble", detail=what)


class _QueueMetrics:
    def __init__(self, plumbing: Plumbing, name: str) -> None:
        self._adds = plumbing._adds.labels(name)  # noqa: SLF001 - a part of it
        self._retries = plumbing._retries.labels(name)  # noqa: SLF001 - a part of it
        self._waited = plumbing._waited.labels(name)  # noqa: SLF001 - a part of it
        self._worked = plumbing._worked.labels(name)  # noqa: SLF001 - a part of it

    def added(self) -> None:
        self._adds.inc()

    def retried(self) -> None:
        self._retries.inc()

    def waited(self, seconds: float) -> None:
        self._waited.observe(seconds)

    def worked(self, seconds: float) -> None:
        self._worked.observe(seconds)
