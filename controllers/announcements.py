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

from controllers.index import Index
from controllers.keys import Key
from controllers.places import MOST, Places
from controllers.told import Told
from jobset_gate import verdicts
from jobset_gate.errors import JobsetGateError
from jobset_gate.model import Generation, JobSetSeen, Verdict

SLICE = 100
"""Requests dealt with before everything else gets its turn: a few milliseconds."""

TOLD_AT_ONCE = 250
"""The same where nothing is done but to send a few bytes."""

_NOBODYS = token_urlsafe()
"""Compared where there is no gang, or none with a token: who has none of a gang does not learn whether it is there."""


class Client(Protocol):
    """Who made a request."""

    def speak(self, text: bytes) -> bool:
        """Sends the answer; False if the client has gone."""

    def end(self) -> None:
        """Nothing follows: now it is the client's turn to close."""

    def drop(self) -> None:
        """Its place is taken away; it is to leave at once."""


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
    known: bool
    """The gang had a pod of this UID that waited on a node, when the request came."""
    told: bool = False
    """Its answer was sent."""
    heard: bool = False
    """And taken."""


class Announcements:
    """Open requests by gang. To be used from the event loop's thread alone."""

    def __init__(self, index: Index, clock: Callable[[], float], told: Told | None = None, *, most: int = MOST) -> None:
        self._index, self._clock = index, clock
        self._requests: dict[Key, dict[Request, None]] = {}
        """By gang, in the order in which they came."""
        self.places = Places(most)
        self.told = Told() if told is None else told

    @property
    def open(self) -> int:
        """Requests open at this moment."""
        return self.places.taken

    def admit(self, key: Key, token: str, generation: Generation, pod: str, client: Client) -> Request:
        """Takes a request in. One for a generation that is decided already is answered here, and announces nothing.

        Raises Refused for one without the token of a gang that is there, or for which there is no place.
        """
        jobset = self._index.jobset(key)
        # A gang without a token was not told of the stream: nobody has the right one.
        right = jobset.token if jobset is not None else ""
        same = compare_digest((right or _NOBODYS).encode(), token.encode())
        if jobset is None or not right or not same or jobset.uid != generation.uid:
            raise Refused(403, "forbidden", "no such gang, or not its token")
        decided = self._index.decided(key)
        answered = decided is not None and decided.generation.covers(generation)
        known = self._index.waits(key, pod)
        if not answered and not _waits(jobset):
            raise Refused(429, "unknown", "the gang does not wait")
        if not self.places.take(key, pod, known=known):
            full = known or self.places.taken >= self.places.most
            raise Refused(429, "too_many" if full else "unknown", "no place for this pod; ask again")
        request = Request(key, generation, pod, client, known)
        self._requests.setdefault(key, {})[request] = None
        if answered and decided is not None:
            self._note([request])
            request.told = client.speak(verdicts.render(decided).encode())
            client.end()
        else:
            self._index.announce(key, pod, self._clock())
        return request

    def hear(self, request: Request) -> None:
        """The client has taken its answer."""
        request.heard = True
        if request.known:
            self.told.hear(request.key, request.pod)

    def leave(self, request: Request) -> None:
        """A request has ended. If no request of its pod was heard by then, the stream has not reached it."""
        key, pod = request.key, request.pod
        requests = self._requests[key]
        del requests[request]
        if not requests:
            del self._requests[key]
        if self.places.give_back(key, pod, known=request.known):
            return  # of a pod's two lines, the other may still be heard
        self._index.withdraw(key, pod)
        if not request.heard and self.told.doubt(key, pod):
            self._index.unheard(key)

    def clear(self, key: Key) -> None:
        """Takes their places from those that nobody will tell: of a gang that waits no more, or of a pod that went."""
        jobset = self._index.jobset(key)
        for request in list(self._requests.get(key, ())):
            over = jobset is None or jobset.uid != request.generation.uid or not _waits(jobset)
            if not request.told and (over or (request.known and not self._index.waits(key, request.pod))):
                request.client.drop()

    async def tell(self, key: Key, verdict: Verdict) -> None:
        """Answers all open requests that this verdict binds. It must be in the gang's ConfigMap already.

        First everybody is told, which is quick, and only then are the requests ended, which is five times the work.
        """
        requests = self._requests.get(key, ())
        text = verdicts.render(verdict).encode()
        bound = [one for one in requests if not one.told and verdict.generation.covers(one.generation)]
        # All of them first: nobody is to be patched while the rest is being told.
        self._note(bound)
        await asyncio.sleep(0)
        for number, request in enumerate(bound, start=1):
            request.told = request.client.speak(text)
            if number % TOLD_AT_ONCE == 0:
                await asyncio.sleep(0)
        for number, request in enumerate(bound, start=1):
            request.client.end()
            if number % SLICE == 0:
                await asyncio.sleep(0)

    def _note(self, requests: Iterable[Request]) -> None:
        """They are being told. What is told to a UID that the gang does not have says nothing of any pod."""
        for request in requests:
            if request.known:
                self.told.tell(request.key, request.pod)


def _waits(jobset: JobSetSeen) -> bool:
    """Whether pods of it may wait for a verdict."""
    return not (jobset.suspended or jobset.finished or jobset.deleting or jobset.managed_elsewhere)
