"""How somebody gets in: a token with each request, or a session begun by the form; and out again."""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from controllers.statuspage import html
from controllers.statuspage.middleware import html_response
from controllers.statuspage.reviews import AccessReviewer, ReviewUnavailable, TooManyAttempts, Viewer
from controllers.statuspage.sessions import SessionStore

_BEARER: Final = "bearer "


@dataclass(frozen=True, slots=True)
class AuthenticatedViewer:
    """A viewer, and by what he came in."""

    viewer: Viewer
    token: str
    session: str = ""


class Authenticator:
    """Knows sessions and asks for tokens."""

    def __init__(self, reviews: AccessReviewer, sessions: SessionStore, *, tls: bool) -> None:
        self._reviews, self._sessions, self._tls = reviews, sessions, tls
        # Cookies know no ports: two pages forwarded to one machine must not take each other's.
        mark = hashlib.sha256(secrets.token_bytes(16)).hexdigest()[:8]
        self.cookie = f"{'__Host-' if tls else ''}jobset-gate-{mark}"

    async def authenticate(self, request: web.Request) -> AuthenticatedViewer | web.Response:
        """Who asks, or what to answer instead."""
        header = request.headers.get("Authorization")
        word = request.cookies.get(self.cookie, "")
        token = _bearer(header) if header is not None else self._sessions.token_of(word) or ""
        if header is None and not token:
            return self.login_form(request, "" if not word else "Your session has ended.")
        try:
            viewer = await self._reviews.review_token(token, request.remote or "")
        except (ReviewUnavailable, TooManyAttempts) as problem:
            return review_error_page(problem, request)
        if viewer is None:
            if header is None:
                self._sessions.delete(word)
            return self.login_form(
                request, "The API server does not know this token: it has expired, or is another cluster's."
            )
        return AuthenticatedViewer(viewer, token, "" if header is not None else word)

    async def is_still_valid(self, guest: AuthenticatedViewer) -> bool:
        """Whether he could come in again. Raises Unavailable."""
        if guest.session and self._sessions.token_of(guest.session) != guest.token:
            return False
        return await self._reviews.review_token(guest.token) == guest.viewer

    def login_form(self, request: web.Request, problem: str = "", after: str = "") -> web.Response:
        """401, with the form."""
        challenge = {"WWW-Authenticate": 'Bearer realm="jobset-gate"'}
        return html_response(html.login_page(problem, after or _after(request.path_qs)), 401, **challenge)

    async def sign_in(self, request: web.Request) -> web.Response:
        """POST of the form."""
        form = await request.post()
        token, after = str(form.get("token", "")).strip(), _after(str(form.get("next", "/")))
        try:
            viewer = await self._reviews.review_token(token, request.remote or "")
        except (ReviewUnavailable, TooManyAttempts) as problem:
            return review_error_page(problem, request)
        if viewer is None:
            return self.login_form(request, "The API server does not know this token.", after)
        self._sessions.delete(request.cookies.get(self.cookie, ""))
        response = web.Response(status=303, headers={"Location": after})
        response.set_cookie(
            self.cookie, self._sessions.create(token), path="/", httponly=True, samesite="Strict", secure=self._tls
        )
        return response

    async def sign_out(self, request: web.Request) -> web.Response:
        """POST of the button."""
        self._sessions.delete(request.cookies.get(self.cookie, ""))
        response = web.Response(status=303, headers={"Location": "/"})
        response.set_cookie(self.cookie, "", max_age=0, path="/", httponly=True, samesite="Strict", secure=self._tls)
        return response


def review_error_page(problem: ReviewUnavailable | TooManyAttempts, request: web.Request) -> web.Response:
    """Nobody can tell who this is."""
    again = _after(request.path_qs) if request.method == "GET" else "/"
    if isinstance(problem, TooManyAttempts):
        text = html.problem_page("Too many tries", [f"{problem}."], again=again)
        return html_response(text, 429, **{"Retry-After": f"{max(1, round(problem.after))}"})
    return html_response(
        html.problem_page("Cannot tell who you are", [f"{_sentence(str(problem))}."], again=again), 503
    )


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _bearer(header: str) -> str:
    return header[len(_BEARER) :].strip() if header.lower().startswith(_BEARER) else ""


def _after(path: str) -> str:
    """A path of ours; nothing that a browser could take for another site."""
    fine = path.startswith("/") and not path.startswith(("//", "/login", "/logout")) and "\\" not in path
    return path if fine and path.isprintable() and len(path) < 2048 else "/"
