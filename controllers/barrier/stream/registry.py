"""The book of the gate stream (A6): who holds a request open, what that says of its gang, and who has been told.

An open request is its pod's announcement that the barrier runs; it ends with the pod's last request. Nothing here
knows of HTTP, and nothing but a verdict that a ConfigMap holds is ever told. Whether it was heard, the request's end
says: a client that has its answer closes.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Protocol

from controllers.barrier.cache import GangCache
from controllers.barrier.stream.delivery import DeliveryLog
from controllers.barrier.stream.limits import MAX_REQUESTS, RequestLimits
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import GangKey, Generation, JobSetSeen, Verdict
from jobset_gate.errors import JobsetGateError

CHUNK = 100
"""Requests dealt with before everything else gets its turn: a few milliseconds."""

SEND_CHUNK = 250
"""The same where nothing is done but to send a few bytes."""

_NO_TOKEN = token_urlsafe()
"""Compared where there is no gang, or none with a token: who has none of a gang does not learn whether it is there."""


class Peer(Protocol):
    """Who made a request."""

    def send_answer(self, text: bytes) -> bool:
        """Sends the answer; False if the client has gone."""

    def finish(self) -> None:
        """Nothing follows: now it is the client's turn to close."""

    def disconnect(self) -> None:
        """Its place is taken away; it is to leave at once."""


class RequestRefused(JobsetGateError):
    """A request that is not held. `status` is HTTP's, `outcome` the metric's."""

    def __init__(self, status: int, outcome: str, text: str) -> None:
        super().__init__(text)
        self.status, self.outcome = status, outcome


@dataclass(slots=True, eq=False)
class StreamRequest:
    """One open request."""

    key: GangKey
    generation: Generation
    pod: str
    """The pod's UID."""
    peer: Peer
    known: bool
    """The gang had a pod of this UID that waited on a node, when the request came."""
    answered: bool = False
    """Its answer was sent."""
    acknowledged: bool = False
    """And taken."""


class WaiterRegistry:
    """Open requests by gang. To be used from the event loop's thread alone."""

    def __init__(
        self,
        cache: GangCache,
        clock: Callable[[], float],
        deliveries: DeliveryLog | None = None,
        *,
        limit: int = MAX_REQUESTS,
    ) -> None:
        self._cache, self._clock = cache, clock
        self._requests: dict[GangKey, dict[StreamRequest, None]] = {}
        """By gang, in the order in which they came."""
        self.limits = RequestLimits(limit)
        self.deliveries = DeliveryLog() if deliveries is None else deliveries

    @property
    def open_count(self) -> int:
        """Requests open at this moment."""
        return self.limits.used

    def admit_request(self, key: GangKey, token: str, generation: Generation, pod: str, client: Peer) -> StreamRequest:
        """Takes a request in. One for a generation that is decided already is answered here, and announces nothing.

        Raises Refused for one without the token of a gang that is there, or for which there is no place.
        """
        jobset = self._cache.get_jobset(key)
        # A gang without a token was not told of the stream: nobody has the right one.
        right = jobset.token if jobset is not None else ""
        same = compare_digest((right or _NO_TOKEN).encode(), token.encode())
        if jobset is None or not right or not same or jobset.uid != generation.uid:
            raise RequestRefused(403, "forbidden", "no such gang, or not its token")
        decided = self._cache.get_verdict(key)
        answered = decided is not None and decided.generation.covers(generation)
        known = self._cache.is_pod_waiting(key, pod)
        if not answered and not _may_wait(jobset):
            raise RequestRefused(429, "unknown", "the gang does not wait")
        if not self.limits.acquire(key, pod, known=known):
            full = known or self.limits.used >= self.limits.limit
            raise RequestRefused(429, "too_many" if full else "unknown", "no place for this pod; ask again")
        request = StreamRequest(key, generation, pod, client, known)
        self._requests.setdefault(key, {})[request] = None
        if answered and decided is not None:
            self._record_deliveries([request])
            request.answered = client.send_answer(verdict_codec.render(decided).encode())
            client.finish()
        else:
            self._cache.add_announced(key, pod, self._clock())
        return request

    def acknowledge_request(self, request: StreamRequest) -> None:
        """The client has taken its answer."""
        request.acknowledged = True
        if request.known:
            self.deliveries.record_received(request.key, request.pod)

    def remove_request(self, request: StreamRequest) -> None:
        """A request has ended. If no request of its pod was heard by then, the stream has not reached it."""
        key, pod = request.key, request.pod
        requests = self._requests[key]
        del requests[request]
        if not requests:
            del self._requests[key]
        if self.limits.release(key, pod, known=request.known):
            return  # of a pod's two lines, the other may still be heard
        self._cache.remove_announced(key, pod)
        if not request.acknowledged and self.deliveries.discard_unconfirmed(key, pod):
            self._cache.on_delivery_failed(key)

    def drop_stale_requests(self, key: GangKey) -> None:
        """Takes their places from those that nobody will tell: of a gang that waits no more, or of a pod that went."""
        jobset = self._cache.get_jobset(key)
        for request in list(self._requests.get(key, ())):
            over = jobset is None or jobset.uid != request.generation.uid or not _may_wait(jobset)
            if not request.answered and (over or (request.known and not self._cache.is_pod_waiting(key, request.pod))):
                request.peer.disconnect()

    async def answer_requests(self, key: GangKey, verdict: Verdict) -> None:
        """Answers all open requests that this verdict binds. It must be in the gang's ConfigMap already.

        First everybody is told, which is quick, and only then are the requests ended, which is five times the work.
        """
        requests = self._requests.get(key, ())
        text = verdict_codec.render(verdict).encode()
        bound = [one for one in requests if not one.answered and verdict.generation.covers(one.generation)]
        # All of them first: nobody is to be patched while the rest is being told.
        self._record_deliveries(bound)
        await asyncio.sleep(0)
        for number, request in enumerate(bound, start=1):
            request.answered = request.peer.send_answer(text)
            if number % SEND_CHUNK == 0:
                await asyncio.sleep(0)
        for number, request in enumerate(bound, start=1):
            request.peer.finish()
            if number % CHUNK == 0:
                await asyncio.sleep(0)

    def _record_deliveries(self, requests: Iterable[StreamRequest]) -> None:
        """They are being told. What is told to a UID that the gang does not have says nothing of any pod."""
        for request in requests:
            if request.known:
                self.deliveries.record_sent(request.key, request.pod)


def _may_wait(jobset: JobSetSeen) -> bool:
    """Whether pods of it may wait for a verdict."""
    return not (jobset.suspended or jobset.finished or jobset.deleting or jobset.managed_elsewhere)
