"""Authentication of viewers: a bearer token with each request, or a session that the login form begins.

Tokens and rights are checked by TokenReview and SubjectAccessReview. The API server's responses are cached for half a
minute, so a right that is revoked is gone by then. Login attempts are rate-limited before they become reviews.
"""

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from aiohttp import web

from controllers.statuspage import html
from controllers.statuspage.html import PROBLEM, PageRefused, html_response
from controllers.statuspage.rows import ListRight, StatusRow
from jobset_gate.barrier.model import Value
from jobset_gate.errors import JobsetGateError
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, KubeError
from jobset_gate.kube.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource
from jobset_gate.objects.caches import TTLCache
from jobset_gate.objects.unstructured import as_map
from jobset_gate.runtime.flowcontrol import KeyedRateLimiter

ANSWER_TTL: Final = 30.0
"""Seconds for which a review is cached."""
REFUSAL_TTL: Final = 10.0
"""The same for a token that the API server does not know."""
MAX_TOKENS, MAX_RIGHTS = 2_000, 20_000
MAX_CONCURRENT: Final = 8
"""Reviews in flight."""
MAX_TOKEN_LENGTH: Final = 16_384
ATTEMPTS_PER_SECOND, ATTEMPT_BURST = 5, 20
"""Of unknown tokens, for each client address."""

MAX_AGE: Final = 8 * 3600.0
MAX_IDLE: Final = 3600.0
MAX_SESSIONS: Final = 500
"""A further one ends the session that was used longest ago."""
ID_BYTES: Final = 32

MAX_NAMESPACES: Final = 100
"""Namespaces that are reviewed one by one; in a larger cluster a viewer with few rights has to name one."""

_BEARER: Final = "bearer "


class ReviewUnavailable(JobsetGateError):
    """The API server gave no answer, so nobody is let in."""


class TooManyAttempts(JobsetGateError):
    """Too many tokens were tried."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"too many tokens were tried; try again in {retry_after:.0f} s")
        self.retry_after = retry_after


class Viewer(Value, frozen=True):
    """A user, as TokenReview describes it."""

    name: str
    review: bytes
    """JSON of what a SubjectAccessReview has to say of the user."""


@dataclass(frozen=True, slots=True)
class AuthenticatedViewer:
    """A viewer with the token, and the session if the token came from one."""

    viewer: Viewer
    token: str
    session: str = ""


@dataclass(frozen=True, slots=True)
class Visibility:
    """In which namespaces the viewer may list what."""

    cluster_wide: frozenset[ListRight]
    namespaced: frozenset[tuple[ListRight, str]] = frozenset()
    """Rights that the viewer has in single namespaces."""
    restricted: tuple[ListRight, ...] = ()
    """The rights that are not cluster-wide."""
    limited: bool = False
    """There were too many namespaces to review each."""

    def shows_row(self, row: StatusRow) -> bool:
        """Whether the viewer may see this row."""
        return all(right in self.cluster_wide or (right, row.namespace) in self.namespaced for right in row.needs)

    def has_right(self, right: ListRight) -> bool:
        """Whether there is a namespace with this right."""
        return right in self.cluster_wide or any(one == right for one, _ in self.namespaced)


class AccessReviewer:
    """Makes reviews in the controller's name. `monotonic` in seconds; `on_review` gets (kind, outcome)."""

    def __init__(
        self,
        client: Client,
        monotonic: Callable[[], float] = time.monotonic,
        on_review: Callable[[str, str], None] = lambda _, __: None,
    ) -> None:
        self._client, self._on_review = client.without_retries(), on_review
        self._tokens: TTLCache[bytes, Viewer | None] = TTLCache(MAX_TOKENS, monotonic)
        self._known: TTLCache[bytes, bool] = TTLCache(MAX_TOKENS, monotonic)
        """Tokens that were good lately: their owners are not rate-limited."""
        self._rights: TTLCache[tuple[Viewer, ListRight, str], bool] = TTLCache(MAX_RIGHTS, monotonic)
        self._attempts = KeyedRateLimiter(ATTEMPTS_PER_SECOND, ATTEMPT_BURST, monotonic)
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)

    async def review_token(self, token: str, peer: str = "") -> Viewer | None:
        """The token's owner; None if the API server does not know it. Raises ReviewUnavailable, TooManyAttempts."""
        if not token or len(token) > MAX_TOKEN_LENGTH or not token.isascii() or not token.isprintable():
            return None
        key = hashlib.sha256(token.encode()).digest()
        if (cached := self._tokens.get(key)) is not None:
            return cached[0]
        if self._known.get(key) is None and (retry_after := self._attempts.try_acquire(peer)):
            self._on_review("token", "limited")
            raise TooManyAttempts(retry_after)
        status = await self._review(TOKEN_REVIEWS, "token", {"token": token})
        viewer = _viewer(as_map(status.get("user"))) if status.get("authenticated") is True else None
        self._on_review("token", "ok" if viewer else "refused")
        self._tokens.put(key, viewer, ANSWER_TTL if viewer else REFUSAL_TTL)
        if viewer:
            self._known.put(key, True, ANSWER_TTL * 4)
        return viewer

    async def may_list(self, viewer: Viewer, right: ListRight, namespace: str = "") -> bool:
        """Whether RBAC allows it in this namespace; "": in all namespaces. Raises ReviewUnavailable."""
        key = (viewer, right, namespace)
        if (cached := self._rights.get(key)) is not None:
            return cached[0]
        attributes = {"group": right.group, "resource": right.resource, "verb": "list", "namespace": namespace}
        spec = {**msgspec.json.decode(viewer.review), "resourceAttributes": attributes}
        allowed = (await self._review(SUBJECT_ACCESS_REVIEWS, "access", spec)).get("allowed") is True
        self._on_review("access", "ok" if allowed else "refused")
        self._rights.put(key, allowed, ANSWER_TTL)
        return allowed

    async def visibility(
        self, viewer: Viewer, rights: Iterable[ListRight], namespaces: Collection[str], namespace: str = ""
    ) -> Visibility:
        """What the viewer may see of these namespaces; of `namespace` alone if given. Raises ReviewUnavailable."""
        candidates = [namespace] if namespace else sorted(namespaces)
        too_many = len(candidates) > MAX_NAMESPACES
        everywhere = {right: await self.may_list(viewer, right) for right in rights}
        restricted = tuple(right for right, may in everywhere.items() if not may)
        pairs = [] if too_many else [(right, name) for right in restricted for name in candidates]
        allowed = await asyncio.gather(*(self.may_list(viewer, right, name) for right, name in pairs))
        return Visibility(
            cluster_wide=frozenset(everywhere) - frozenset(restricted),
            namespaced=frozenset(pair for pair, may in zip(pairs, allowed, strict=True) if may),
            restricted=restricted,
            limited=too_many and bool(restricted),
        )

    async def _review(self, resource: Resource, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        """The status of the review."""
        try:
            async with self._slots:
                return as_map((await self._client.create(resource, {"spec": spec})).get("status"))
        except KubeError as error:
            self._on_review(kind, "error")
            why = "the API server does not answer, so nobody can be let in"
            if isinstance(error, Forbidden):
                missing = f"create {resource.plural}.{resource.group}"
                why = f"the controller lacks the right to {missing}, so it cannot tell who you are"
            raise ReviewUnavailable(why) from error


class SessionStore:
    """Tokens by session id, in memory only. `monotonic` in seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._sessions: TTLCache[bytes, tuple[str, float]] = TTLCache(MAX_SESSIONS, monotonic)
        """Token and end, by the hash of the id, so that the time of a look-up reveals nothing about it."""

    def __len__(self) -> int:
        return len(self._sessions)

    def create(self, token: str) -> str:
        """The id for the cookie."""
        session_id = secrets.token_urlsafe(ID_BYTES)
        self._sessions.put(_hash(session_id), (token, self._monotonic() + MAX_AGE), MAX_IDLE)
        return session_id

    def token_of(self, session_id: str) -> str | None:
        """The token of a live session, whose idle time begins again."""
        key = _hash(session_id)
        if (found := self._sessions.get(key)) is None:
            return None
        token, end = found[0]
        self._sessions.put(key, found[0], min(MAX_IDLE, end - self._monotonic()))
        return token

    def delete(self, session_id: str) -> None:
        self._sessions.drop(_hash(session_id))


class Authenticator:
    """Turns requests into viewers."""

    def __init__(self, reviewer: AccessReviewer, sessions: SessionStore, *, tls: bool) -> None:
        self._reviewer, self._sessions, self._tls = reviewer, sessions, tls
        # Cookies do not know ports: two pages forwarded to one machine must not take each other's.
        self.cookie = f"{'__Host-' if tls else ''}jobset-gate-{secrets.token_hex(4)}"

    async def authenticate(self, request: web.Request) -> AuthenticatedViewer:
        """The viewer. Raises PageRefused with the form, ReviewUnavailable, TooManyAttempts."""
        header = request.headers.get("Authorization")
        session = request.cookies.get(self.cookie, "")
        token = _bearer(header) if header is not None else self._sessions.token_of(session) or ""
        if header is None and not token:
            raise PageRefused(self._login_form(request, "" if not session else "Your session has ended."))
        viewer = await self._reviewer.review_token(token, request.remote or "")
        if viewer is None:
            if header is None:
                self._sessions.delete(session)
            problem = "The API server does not know this token: it has expired, or is another cluster's."
            raise PageRefused(self._login_form(request, problem))
        return AuthenticatedViewer(viewer, token, "" if header is not None else session)

    async def is_still_valid(self, login: AuthenticatedViewer) -> bool:
        """Whether session and token still hold. Raises ReviewUnavailable, TooManyAttempts."""
        if login.session and self._sessions.token_of(login.session) != login.token:
            return False
        return await self._reviewer.review_token(login.token) == login.viewer

    def _login_form(self, request: web.Request, problem: str = "", after: str = "") -> web.Response:
        """401, with the form."""
        form = html.render("login", title="Sign in", problem=problem, next=after or local_path(request.path_qs))
        challenge = {"WWW-Authenticate": 'Bearer realm="jobset-gate"'}
        response = html_response(form, 401, **challenge)
        response[PROBLEM] = problem or "Send a token of the cluster: Authorization: Bearer TOKEN"
        return response

    async def sign_in(self, request: web.Request) -> web.Response:
        """POST of the form. Raises ReviewUnavailable, TooManyAttempts."""
        form = await request.post()
        token, after = str(form.get("token", "")).strip(), local_path(str(form.get("next", "/")))
        viewer = await self._reviewer.review_token(token, request.remote or "")
        if viewer is None:
            return self._login_form(request, "The API server does not know this token.", after)
        return self._redirect(request, after, self._sessions.create(token))

    async def sign_out(self, request: web.Request) -> web.Response:
        """POST of the button."""
        return self._redirect(request, "/", "", max_age=0)

    def _redirect(self, request: web.Request, path: str, session: str, max_age: int | None = None) -> web.Response:
        """With another session in the cookie; the one before ends."""
        self._sessions.delete(request.cookies.get(self.cookie, ""))
        response = web.Response(status=303, headers={"Location": path})
        response.set_cookie(
            self.cookie, session, max_age=max_age, path="/", httponly=True, samesite="Strict", secure=self._tls
        )
        return response


def _viewer(user: dict[str, Any]) -> Viewer | None:
    name = user.get("username")
    if not isinstance(name, str) or not name:
        return None
    known: dict[str, Any] = {key: user[key] for key in ("uid", "groups", "extra") if key in user}
    return Viewer(name=name, review=msgspec.json.encode({"user": name, **known}, order="deterministic"))


def _hash(session_id: str) -> bytes:
    return hashlib.sha256(session_id.encode("utf-8", "replace")).digest()


def _bearer(header: str) -> str:
    return header[len(_BEARER) :].strip() if header.lower().startswith(_BEARER) else ""


def local_path(path: str) -> str:
    """The path, or "/" if a browser could take it for another site's address."""
    fine = path.startswith("/") and not path.startswith(("//", "/login", "/logout")) and "\\" not in path
    return path if fine and path.isprintable() and len(path) < 2048 else "/"
