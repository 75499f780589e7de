"""The book of the gate stream (A6): who holds a request open, what that says of its gang, and who has been told.

An open request is its pod's announcement that the barrier runs; it ends with the pod's last request. Nothing here
knows of HTTP, and nothing but a verdict that a ConfigMap holds is ever told. Whether it was heard, the request's end
says: a client that has its answer closes.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Protocol

from controllers.index import Index
from controllers.keys import Key
from controllers.told import Told
from jobset_gate import verdicts
from jobset_gate.errors import JobsetGateError
from jobset_gate.model import Generation, JobSetSeen, Verdict

MOST_OPEN = 50_000
"""Requests open at once, over all gangs."""

SPARE = 16
"""Requests that a gang may hold open beyond two for each of its pods: an old one may be half open for a while."""

SLICE = 100
"""Requests dealt with before everything else gets its turn: a few milliseconds."""

TOLD_AT_ONCE = 250
"""The same where nothing is done but to send a few bytes."""


class Client(Protocol):
    """Who made a request."""

    def speak(self, text: bytes) -> bool:
        """Sends the answer; False if the client has gone."""

    def end(self) -> None:
        """Nothing follows: now it is the client's turn to close."""


class Refused(JobsetGateError):
    """A request that is not held. `status` is HTTP's, `outcome` the metric's."""

    def __init__(self, status: int, outcome: str, text: str) -> None:
        super().__init__(text)
        self.status, self.outcome = status, outcome


@dataclass(slots=True, eq=False)
class Request:
    """One open request."""

    key: Key
    generation: Generation
    pod: str
    """The pod's UID."""
    client: Client
    told: bool = False
    """Its answer was sent."""
    heard: bool = False
    """And taken."""


@dataclass(slots=True)
class _Gang:
    requests: dict[Request, None] = field(default_factory=dict)
    """In the order in which they came."""
    pods: Counter[str] = field(default_factory=Counter)
    """How many each pod has open: two while it reconnects."""


class Announcements:
    """Open requests by gang. To be used from the event loop's thread alone."""

    def __init__(
        self, index: Index, clock: Callable[[], float], told: Told | None = None, *, most: int = MOST_OPEN
    ) -> None:
        self._index, self._clock, self._most = index, clock, most
        self._gangs: dict[Key, _Gang] = {}
        self.told = Told() if told is None else told
        self.open = 0
        """Requests held at this moment."""

    def admit(self, key: Key, token: str, generation: Generation, pod: str, client: Client) -> Request:
        """Takes a request in. One for a generation that is decided already is answered here, and announces nothing.

        Raises Refused for one without the gang's token, of another gang, or beyond the bounds.
        """
        jobset = self._index.jobset(key)
        if jobset is None:
            raise Refused(404, "unknown", "no such gang")
        # A gang without a token was not told of the stream: nobody has the right one.
        if not jobset.token or not compare_digest(jobset.token.encode(), token.encode()):
            raise Refused(403, "forbidden", "wrong token")
        if jobset.uid != generation.uid:
            raise Refused(404, "unknown", "the gang has another UID")
        request = Request(key, generation, pod, client)
        decided = self._index.decided(key)
        if decided is not None and decided.generation.covers(generation):
            self.told.tell((pod,))
            request.told = client.speak(verdicts.render(decided).encode())
            client.end()
        else:
            self._enter(request, jobset)
        return request

    def hear(self, request: Request) -> None:
        """The client has taken its answer."""
        request.heard = True
        self.told.hear(request.pod)

    def leave(self, request: Request) -> None:
        """A request has ended. If no request of its pod was heard by then, the stream has not reached it."""
        others = self._take_out(request)
        if not request.heard and not others and self.told.doubt(request.pod):
            self._index.unheard(request.key)

    async def tell(self, key: Key, verdict: Verdict) -> None:
        """Answers all open requests that this verdict binds. It must be in the gang's ConfigMap already.

        First everybody is told, which is quick, and only then are the requests ended, which is five times the work.
        """
        gang = self._gangs.get(key)
        if gang is None:
            return
        text = verdicts.render(verdict).encode()
        bound = [one for one in gang.requests if not one.told and verdict.generation.covers(one.generation)]
        # All of them first: nobody is to be patched while the rest is being told.
        self.told.tell(request.pod for request in bound)
        await asyncio.sleep(0)
        for number, request in enumerate(bound, start=1):
            request.told = request.client.speak(text)
            if number % TOLD_AT_ONCE == 0:
                await asyncio.sleep(0)
        for number, request in enumerate(bound, start=1):
            request.client.end()
            if number % SLICE == 0:
                await asyncio.sleep(0)

    def _take_out(self, request: Request) -> int:
        """How many requests its pod still holds open."""
        gang = self._gangs.get(request.key)
        if gang is None or request not in gang.requests:
            return 0  # it was answered when it came
        del gang.requests[request]
        self.open -= 1
        gang.pods[request.pod] -= 1
        others = gang.pods[request.pod]
        if not others:
            del gang.pods[request.pod]
            self._index.withdraw(request.key, request.pod)
        if not gang.requests:
            del self._gangs[request.key]
        return others

    def _enter(self, request: Request, jobset: JobSetSeen) -> None:
        if self.open >= self._most:
            raise Refused(429, "too_many", "too many requests are open")
        gang = self._gangs.get(request.key)
        share = 2 * sum(target.expected for target in jobset.targets) + SPARE
        if gang is not None and len(gang.requests) >= share:
            raise Refused(429, "too_many", "the gang has too many requests open")
        if gang is None:
            gang = self._gangs[request.key] = _Gang()
        gang.requests[request] = None
        self.open += 1
        gang.pods[request.pod] += 1
        if gang.pods[request.pod] == 1:
            self._index.announce(request.key, request.pod, self._clock())
