"""What is done to every request and every answer: who may knock at all, and headers that leave a browser no choice."""

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlsplit

import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware

from controllers.statuspage import html
from controllers.statuspage.options import PageOptions, is_loopback

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
PICTURE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
"""Of a picture by itself: it carries its own style sheet, and nothing else may be in it."""
HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
WRITES: Final = ("/login", "/logout")
"""The only paths that take a POST."""

_log = structlog.get_logger(__name__)


def html_response(text: str, status: int = 200, **headers: str) -> web.Response:
    """A page."""
    return web.Response(text=text, status=status, content_type="text/html", headers=headers)


def security_middleware(options: PageOptions, count: Callable[[int], None]) -> Middleware:
    """The middleware around all handlers; `count` is told each answer's code."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await _handle(options, request, handler)
        count(response.status)
        return response

    return guard


async def add_security_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Before each answer is sent."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Content-Security-Policy", POLICY)
    if request.secure:
        response.headers.setdefault("Strict-Transport-Security", "max-age=31536000")
    if "Server" in response.headers:
        del response.headers["Server"]


async def _handle(options: PageOptions, request: web.Request, handler: Handler) -> web.StreamResponse:
    refused = _refusal(options, request)
    if refused is not None:
        return refused
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return html_response(html.problem_page("Not found", ["There is no such page."], again="/"), 404)
    except web.HTTPMethodNotAllowed as error:
        return _not_allowed(", ".join(sorted(error.allowed_methods)))
    except web.HTTPRequestEntityTooLarge:
        return html_response(html.problem_page("Too large", ["No token is as long as that."], again="/"), 413)
    except web.HTTPException:
        raise
    except Exception:  # noqa: BLE001 - one request that fails must not show its stack to anybody
        _log.exception("the page failed on a request", path=request.path)
        return html_response(
            html.problem_page("Something is wrong with this page", ["The controller's log says what."]), 500
        )


def _refusal(options: PageOptions, request: web.Request) -> web.Response | None:
    if not _is_known_host(options, request.host):
        # A name that somebody has made to point here would let his page read this one.
        told = f"This page is served to {options.address} and localhost only, not by the name that was asked for."
        return html_response(html.problem_page("Another name", [told]), 421)
    if request.method in ("GET", "HEAD"):
        return None
    if request.method != "POST" or request.path not in WRITES:
        return _not_allowed("GET, HEAD")
    if not _is_same_origin(request):
        return html_response(
            html.problem_page("Not from here", ["Another site has sent this form; nothing was done."], again="/"), 403
        )
    return None


def _not_allowed(methods: str) -> web.Response:
    return html_response(
        html.problem_page("Only to be read", ["This page changes nothing."], again="/"), 405, Allow=methods
    )


def _is_known_host(options: PageOptions, host: str) -> bool:
    """On loopback anybody's page could have the browser ask under a name of its own (DNS rebinding)."""
    if not options.local:
        return True
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return name == options.address or is_loopback(name)


def _is_same_origin(request: web.Request) -> bool:
    """Whether a form comes from our own page, or from a program that is no browser."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == request.host
