"""Open requests of the gate stream (A6), without HTTP.

An open request announces that its pod's barrier runs. Requests are answered with verdicts that a ConfigMap holds, and
with nothing else. A pod that is gated alone has no mark of its generation (K5), so its request is answered only by a
pass over its gang that has seen the pod.

A request costs a connection, an open file and 2 KiB. A pod that the cache knows to wait on a node may have two, since
the connection before a reconnect may stay half open. Any other request only proves that it has the gang's token: there
are few per gang, for pods that the watch shows late. A refused client retries later and reads its files meanwhile.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Protocol

from controllers.barrier.cache import GangCache
from controllers.barrier.stream.delivery import CHUNK, DeliveryLog
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import GangKey, Generation, PodSeen, Verdict, WorkloadSeen
from jobset_gate.errors import JobsetGateError
from jobset_gate.sources.table import SOURCES

SEND_CHUNK = 250
"""The same as CHUNK where a few bytes are sent and nothing else is done."""

MAX_REQUESTS = 50_000
"""Open requests, if the process may open as many files."""

MAX_PER_POD = 2

MAX_UNKNOWN_PER_GANG = 16
"""Open requests of a gang for pods that the cache does not know to wait."""

UNKNOWN_DIVISOR = 10
"""The share of one namespace in such requests: one in so many of all."""

_NO_TOKEN = token_urlsafe()
"""Compared if there is no gang or no token: without a gang's token a client cannot learn if the gang exists."""


class RequestLimits:
    """Open requests. `pod`: its UID; `known`: the cache knows that the pod waits on a node."""

    def __init__(self, limit: int = MAX_REQUESTS) -> None:
        self.limit = limit
        self.used = 0
        self._pods: Counter[tuple[GangKey, str]] = Counter()
        self._unknown: Counter[GangKey | str] = Counter()
        """By gang and by namespace."""

    def acquire(self, key: GangKey, pod: str, *, known: bool) -> bool:
        """False at a limit."""
        if self.used >= self.limit or self._pods[key, pod] >= MAX_PER_POD:
            return False
        part = max(MAX_UNKNOWN_PER_GANG, self.limit // UNKNOWN_DIVISOR)
        if not known and (self._unknown[key] >= MAX_UNKNOWN_PER_GANG or self._unknown[key.namespace] >= part):
            return False
        self._add(key, pod, 1, known=known)
        return True

    def release(self, key: GangKey, pod: str, *, known: bool) -> int:
        """Undoes `acquire`. Returns the number of requests that the pod still has."""
        self._add(key, pod, -1, known=known)
        return self._pods[key, pod]

    def _add(self, key: GangKey, pod: str, many: int, *, known: bool) -> None:
        self.used += many
        self._pods[key, pod] += many
        if not self._pods[key, pod]:
            del self._pods[key, pod]
        for scope in () if known else (key, key.namespace):
            self._unknown[scope] += many
            if not self._unknown[scope]:
                del self._unknown[scope]


class Peer(Protocol):
    """The client of a request."""

    def send_answer(self, text: bytes) -> bool:
        """Sends the answer; False if the client is gone."""

    def finish(self) -> None:
        """The answer is complete: the client closes next."""

    def disconnect(self) -> None:
        """Aborts the connection."""


class RequestRefused(JobsetGateError):
    """A refused request. `status` is HTTP's, `outcome` and `source` the metric's labels."""

    def __init__(self, status: int, outcome: str, text: str, source: str = "") -> None:
        super().__init__(text)
        self.status, self.outcome, self.source = status, outcome, source


@dataclass(slots=True, eq=False)
class StreamRequest:
    key: GangKey
    generation: Generation
    pod: str
    """The pod's UID."""
    peer: Peer
    known: bool
    """When the request came, the gang had a pod of this UID that waited on a node."""
    answered: bool = False
    acknowledged: bool = False
    """The answer was received."""


class WaiterRegistry:
    """Open requests by gang. Not thread-safe."""

    def __init__(
        self, cache: GangCache, clock: Callable[[], float], deliveries: DeliveryLog, *, limit: int = MAX_REQUESTS
    ) -> None:
        self._cache, self._clock = cache, clock
        self._requests: dict[GangKey, dict[StreamRequest, None]] = {}
        """By gang, in order of arrival."""
        self.limits = RequestLimits(limit)
        self.deliveries = deliveries

    def count_open(self, source: str) -> int:
        """Number of open requests of this source's gangs."""
        return sum(len(requests) for key, requests in self._requests.items() if key.source == source)

    def admit_request(self, key: GangKey, token: str, generation: Generation, pod: str, client: Peer) -> StreamRequest:
        """Holds a request, or answers it at once if its generation is decided.

        The key of a pod that is gated alone has no name: its gang is the cache's. Raises RequestRefused without the
        token of an existing gang or pod, or at a limit.
        """
        if SOURCES[key.source].gates_pods:
            return self._admit_pod(key, token, generation, pod, client)
        workload = self._cache.get_workload(key)
        # A gang without a token does not use the stream: no token is right.
        right = workload.token if workload is not None else ""
        same = compare_digest((right or _NO_TOKEN).encode(), token.encode())
        if workload is None or not right or not same or workload.uid != generation.uid:
            raise RequestRefused(403, "forbidden", "no such gang, or not its token", key.source)
        decided = self._cache.get_verdict(key)
        answered = decided is not None and decided.generation.covers(generation)
        known = self._cache.is_pod_waiting(key, pod)
        if not answered and not _may_wait(workload):
            raise RequestRefused(429, "unknown", "the gang does not wait", key.source)
        request = self._open(StreamRequest(key, generation, pod, client, known))
        if answered and decided is not None:
            self._record_deliveries([request])
            request.answered = client.send_answer(verdict_codec.render(decided).encode())
            client.finish()
        else:
            self._cache.add_announced(key, pod, self._clock())
        return request

    def _admit_pod(self, key: GangKey, token: str, generation: Generation, pod: str, client: Peer) -> StreamRequest:
        found = self._cache.find_pod(key.namespace, pod)
        right = found[1].token if found is not None else ""
        same = compare_digest((right or _NO_TOKEN).encode(), token.encode())
        if found is None or not same or generation.uid != pod:
            raise RequestRefused(403, "forbidden", "no such pod, or not its token", key.source)
        key = found[0]
        if not self._cache.is_pod_waiting(key, pod):
            raise RequestRefused(429, "unknown", "the pod does not wait", key.source)
        request = self._open(StreamRequest(key, generation, pod, client, known=True))
        self._cache.add_announced(key, pod, self._clock())
        self._cache.on_pod_request(key, pod)
        return request

    def _open(self, request: StreamRequest) -> StreamRequest:
        """Raises RequestRefused at a limit."""
        key, known = request.key, request.known
        if not self.limits.acquire(key, request.pod, known=known):
            full = known or self.limits.used >= self.limits.limit
            raise RequestRefused(429, "too_many" if full else "unknown", "no place for this pod; ask again", key.source)
        self._requests.setdefault(key, {})[request] = None
        return request

    def acknowledge_request(self, request: StreamRequest) -> None:
        """The client has received the answer."""
        request.acknowledged = True
        if request.known:
            self.deliveries.record_received(request.key, request.pod)

    def remove_request(self, request: StreamRequest) -> None:
        """A request has ended. If none of its pod was acknowledged, the pod has not received the verdict."""
        key, pod = request.key, request.pod
        requests = self._requests[key]
        del requests[request]
        if not requests:
            del self._requests[key]
        if self.limits.release(key, pod, known=request.known):
            return  # the pod's other request may still be acknowledged
        self._cache.remove_announced(key, pod)
        if not request.acknowledged and self.deliveries.discard_unconfirmed(key, pod):
            self._cache.on_delivery_failed(key)

    def drop_stale_requests(self, key: GangKey) -> None:
        """Disconnects requests that get no answer: the gang does not wait any more, or the pod is gone."""
        workload, gates_pods = self._cache.get_workload(key), SOURCES[key.source].gates_pods
        uid, waits = ("", False) if workload is None else (workload.uid, _may_wait(workload))
        for request in list(self._requests.get(key, ())):
            over = not waits or not (gates_pods or request.generation.uid == uid)
            if not request.answered and (over or (request.known and not self._cache.is_pod_waiting(key, request.pod))):
                request.peer.disconnect()

    async def answer_requests(self, key: GangKey, verdict: Verdict, pods: Iterable[PodSeen] = ()) -> None:
        """Answers all open requests that this verdict binds. The gang's ConfigMap must hold the verdict.

        `pods`: those of the snapshot that led to it. Where pods are gated alone, no other pod is answered, each with
        its own address. All answers are sent first; finishing a request takes five times as long.
        """
        requests = [one for one in self._requests.get(key, ()) if not one.answered]
        if SOURCES[key.source].gates_pods:
            seen = _bound_pods(verdict, pods) if requests else ()
            bound = [one for one in requests if one.pod in seen]
        else:
            bound = [one for one in requests if verdict.generation.covers(one.generation)]
        # Before the first answer: a pass during the answers must not patch the rest.
        self._record_deliveries(bound)
        await asyncio.sleep(0)
        text_for = _texts(key, verdict)
        for number, request in enumerate(bound, start=1):
            request.answered = request.peer.send_answer(text_for(request.pod))
            if number % SEND_CHUNK == 0:
                await asyncio.sleep(0)
        for number, request in enumerate(bound, start=1):
            request.peer.finish()
            if number % CHUNK == 0:
                await asyncio.sleep(0)

    def _record_deliveries(self, requests: Iterable[StreamRequest]) -> None:
        """Only pods that the gang has: an answer to another UID proves nothing about a pod."""
        for request in requests:
            if request.known:
                self.deliveries.record_sent(request.key, request.pod)


def _bound_pods(verdict: Verdict, pods: Iterable[PodSeen]) -> set[str]:
    """UIDs of the living pods that this verdict binds."""
    covers = verdict.generation.covers
    return {it.uid for it in pods if it.alive and covers(Generation(it.workload_uid, it.attempt, it.epoch))}


def _texts(key: GangKey, verdict: Verdict) -> Callable[[str], bytes]:
    """The answer to the pod of this UID."""
    if SOURCES[key.source].gates_pods:
        return lambda pod: verdict_codec.render(verdict_codec.addressed(verdict, pod)).encode()
    text = verdict_codec.render(verdict).encode()
    return lambda _: text


def _may_wait(workload: WorkloadSeen) -> bool:
    """True if pods of it may wait for a verdict."""
    return not (workload.suspended or workload.finished or workload.deleting or workload.managed_elsewhere)
