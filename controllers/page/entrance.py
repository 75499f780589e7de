"""How somebody gets in: a token with each request, or a session begun by the form; and out again."""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from controllers.page import pages
from controllers.page.guard import html
from controllers.page.reviews import Reviews, TooMany, Unavailable, Viewer
from controllers.page.sessions import Sessions

_BEARER: Final = "bearer "


@dataclass(frozen=True, slots=True)
class Guest:
    """A viewer, and by what he came in."""

    viewer: Viewer
    token: str
    session: str = ""


class Entrance:
    """Knows sessions and asks for tokens."""

    def __init__(self, reviews: Reviews, sessions: Sessions, *, tls: bool) -> None:
        self._reviews, self._sessions, self._tls = reviews, sessions, tls
        # Cookies know no ports: two pages forwarded to one machine must not take each other's.
        mark = hashlib.sha256(secrets.token_bytes(16)).hexdigest()[:8]
        self.cookie = f"{'__Host-' if tls else ''}jobset-gate-{mark}"

    async def guest(self, request: web.Request) -> Guest | web.Response:
        """Who asks, or what to answer instead."""
        header = request.headers.get("Authorization")
        word = request.cookies.get(self.cookie, "")
        token = _bearer(header) if header is not None else self._sessions.token(word) or ""
        if header is None and not token:
            return self.asked(request, "" if not word else "Your session has ended.")
        try:
            viewer = await self._reviews.viewer(token, request.remote or "")
        except (Unavailable, TooMany) as problem:
            return unavailable(problem, request)
        if viewer is None:
            if header is None:
                self._sessions.end(word)
            return self.asked(
                request, "The API server does not know this token: it has expired, or is another cluster's."
            )
        return Guest(viewer, token, "" if header is not None else word)

    async def stays(self, guest: Guest) -> bool:
        """Whether he could come in again. Raises Unavailable."""
        if guest.session and self._sessions.token(guest.session) != guest.token:
            return False
        return await self._reviews.viewer(guest.token) == guest.viewer

    def asked(self, request: web.Request, problem: str = "", after: str = "") -> web.Response:
        """401, with the form."""
        challenge = {"WWW-Authenticate": 'Bearer realm="jobset-gate"'}
        return html(pages.login(problem, after or _after(request.path_qs)), 401, **challenge)

    async def sign_in(self, request: web.Request) -> web.Response:
        """POST of the form."""
        form = await request.post()
        token, after = str(form.get("token", "")).strip(), _after(str(form.get("next", "/")))
        try:
            viewer = await self._reviews.viewer(token, request.remote or "")
        except (Unavailable, TooMany) as problem:
            return unavailable(problem, request)
        if viewer is None:
            return self.asked(request, "The API server does not know this token.", after)
        self._sessions.end(request.cookies.get(self.cookie, ""))
        response = web.Response(status=303, headers={"Location": after})
        response.set_cookie(
            self.cookie, self._sessions.begin(token), path="/", httponly=True, samesite="Strict", secure=self._tls
        )
        return response

    async def sign_out(self, request: web.Request) -> web.Response:
        """POST of the button."""
        self._sessions.end(request.cookies.get(self.cookie, ""))
        response = web.Response(status=303, headers={"Location": "/"})
        response.set_cookie(self.cookie, "", max_age=0, path="/", httponly=True, samesite="Strict", secure=self._tls)
        return response


def unavailable(problem: Unavailable | TooMany, request: web.Request) -> web.Response:
    """Nobody can tell who this is."""
    again = _after(request.path_qs) if request.method == "GET" else "/"
    if isinstance(problem, TooMany):
        text = pages.problem("Too many tries", [f"{problem}."], again=again)
        return html(text, 429, **{"Retry-After": f"{max(1, round(problem.after))}"})
    return html(pages.problem("Cannot tell who you are", [f"{_sentence(str(problem))}."], again=again), 503)


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _bearer(header: str) -> str:
    return header[len(_BEARER) :].strip() if header.lower().startswith(_BEARER) else ""


def _after(path: str) -> str:
    """A path of ours; nothing that a browser could take for another site."""
    fine = path.startswith("/") and not path.startswith(("//", "/login", "/logout")) and "\\" not in path
    return path if fine and path.isprintable() and len(path) < 2048 else "/"
