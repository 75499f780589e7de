"""Who a viewer is and what he may list, as the API server says it: TokenReview and SubjectAccessReview.

Answers are kept for half a minute, so a right that is taken away is gone by then. Whoever tries tokens is slowed down
before the API server is asked.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable
from typing import Any, Final

from controllers.statuspage.rows import ListRight
from jobset_gate.barrier.model import Value
from jobset_gate.errors import JobsetGateError
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, KubeError
from jobset_gate.kube.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource
from jobset_gate.objects.unstructured import as_list, as_map, nested
from jobset_gate.runtime.rate_limiter import KeyedRateLimiter
from jobset_gate.runtime.ttl_cache import TTLCache

ANSWER_TTL: Final = 30.0
"""Seconds for which an answer is believed."""
REFUSAL_TTL: Final = 10.0
"""The same for a token that nobody knows."""
MAX_TOKENS, MAX_RIGHTS = 2_000, 20_000
MAX_CONCURRENT: Final = 8
"""Reviews under way."""
MAX_TOKEN_LENGTH: Final = 16_384


class ReviewUnavailable(JobsetGateError):
    """The API server gave no answer, so nobody is let in."""


class TooManyAttempts(JobsetGateError):
    """Too many tokens were tried."""

    def __init__(self, after: float) -> None:
        super().__init__(f"too many tokens were tried; try again in {after:.0f} s")
        self.after = after


class Viewer(Value, frozen=True):
    """Who somebody is, as the API server sees him."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class AccessReviewer:
    """Asks the API server as the controller. `now` in seconds; `asked` is told (kind, outcome)."""

    def __init__(
        self,
        client: Client,
        now: Callable[[], float] = time.monotonic,
        asked: Callable[[str, str], None] = lambda _, __: None,
    ) -> None:
        self._client, self._asked = client.without_retries(), asked
        self._tokens: TTLCache[bytes, Viewer | None] = TTLCache(MAX_TOKENS, now)
        self._good: TTLCache[bytes, bool] = TTLCache(MAX_TOKENS, now)
        self._rights: TTLCache[tuple[Viewer, ListRight, str], bool] = TTLCache(MAX_RIGHTS, now)
        self._tries = KeyedRateLimiter(5, 20, now)
        self._room = asyncio.Semaphore(MAX_CONCURRENT)

    async def review_token(self, token: str, peer: str = "") -> Viewer | None:
        """Whose token it is; None if the API server does not know it. Raises Unavailable, TooMany."""
        if not token or len(token) > MAX_TOKEN_LENGTH or not token.isascii() or not token.isprintable():
            return None
        key = hashlib.sha256(token.encode()).digest()
        if (kept := self._tokens.get(key)) is not None:
            return kept[0]
        if self._good.get(key) is None and (after := self._tries.try_acquire(peer)):
            self._asked("token", "limited")
            raise TooManyAttempts(after)
        answer = await self._ask(TOKEN_REVIEWS, "token", {"token": token})
        status = as_map(answer.get("status"))
        found = _viewer(as_map(status.get("user"))) if status.get("authenticated") is True else None
        self._asked("token", "ok" if found else "refused")
        self._tokens.put(key, found, ANSWER_TTL if found else REFUSAL_TTL)
        if found:
            self._good.put(key, True, ANSWER_TTL * 4)
        return found

    async def may_list(self, viewer: Viewer, right: ListRight, namespace: str = "") -> bool:
        """Whether he may, in this namespace; "": in all of them. Raises Unavailable."""
        key = (viewer, right, namespace)
        if (kept := self._rights.get(key)) is not None:
            return kept[0]
        asked = {"group": right.group, "resource": right.resource, "verb": "list", "namespace": namespace}
        spec = {
            "user": viewer.name,
            "uid": viewer.uid,
            "groups": list(viewer.groups),
            "extra": {key: list(values) for key, values in viewer.extra},
            "resourceAttributes": asked,
        }
        answer = await self._ask(SUBJECT_ACCESS_REVIEWS, "access", spec)
        allowed = as_map(answer.get("status")).get("allowed") is True
        self._asked("access", "ok" if allowed else "refused")
        self._rights.put(key, allowed, ANSWER_TTL)
        return allowed

    async def _ask(self, resource: Resource, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        try:
            async with self._room:
                return await self._client.create(resource, {"spec": spec})
        except Forbidden as refused:
            self._asked(kind, "error")
            missing = f"create {resource.plural}.{resource.group}"
            raise ReviewUnavailable(
                f"the controller lacks the right to {missing}, so it cannot tell who you are"
            ) from refused
        except KubeError as error:
            self._asked(kind, "error")
            raise ReviewUnavailable("the API server does not answer, so nobody can be let in") from error


def _viewer(user: dict[str, Any]) -> Viewer | None:
    name = nested(user, "username")
    if not isinstance(name, str) or not name:
        return None
    extra = as_map(user.get("extra"))
    return Viewer(
        name=name,
        uid=str(user.get("uid") or ""),
        groups=tuple(str(it) for it in as_list(user.get("groups"))),
        extra=tuple(sorted((key, tuple(str(it) for it in as_list(values))) for key, values in extra.items())),
    )
