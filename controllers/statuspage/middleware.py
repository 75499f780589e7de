"""Who reaches the page: its address, and the middleware that refuses other hosts, methods and origins."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware

from controllers.statuspage.auth import ReviewUnavailable, TooManyAttempts, local_path
from controllers.statuspage.html import PROBLEM, PageRefused, json_response, problem_response
from jobset_gate.kube.access import is_loopback
from jobset_gate.timeline.summary import Prices

LOOPBACK: Final = "127.0.0.1"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
PICTURE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
"""For a timeline that is opened alone: it carries its own style sheet."""
HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
POST_PATHS: Final = ("/login", "/logout")
"""The only paths that take a POST."""

API: Final = "/api/"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PageOptions:
    """How to serve the page. Port 0 takes a free one."""

    port: int
    address: str = LOOPBACK
    """127.0.0.1 can be reached by `kubectl port-forward` alone, which ends in the pod's own loopback."""
    certificate: Path | None = None
    key: Path | None = None
    prices: Prices = field(default_factory=dict)

    @property
    def tls(self) -> bool:
        """Whether it serves HTTPS."""
        return self.certificate is not None and self.key is not None

    @property
    def local(self) -> bool:
        """Whether only the pod itself can reach it."""
        return is_loopback(self.address)

    @property
    def problem(self) -> str:
        """Why these options are refused; "" if they are not."""
        if (self.certificate is None) != (self.key is None):
            return "the status page needs both pageTlsCert and pageTlsKey, or neither"
        if not self.local and not self.tls:
            return (
                f"the status page may not listen on {self.address} without TLS, since viewers send it their tokens:"
                f" set pageTlsCert and pageTlsKey, or leave pageAddress at {LOOPBACK} and use kubectl port-forward"
            )
        return ""


def security_middleware(options: PageOptions, count: Callable[[int], None]) -> Middleware:
    """Around all handlers; `count` gets each response's code."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await _handle(options, request, handler)
        if request.path.startswith(API) and PROBLEM in response:
            response = _status_json(response)
        count(response.status)
        return response

    return guard


async def add_security_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Before each response is sent."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Content-Security-Policy", POLICY)
    if request.secure:
        response.headers.setdefault("Strict-Transport-Security", "max-age=31536000")
    if "Server" in response.headers:
        del response.headers["Server"]


async def _handle(options: PageOptions, request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        _check(options, request)
        return await handler(request)
    except PageRefused as refusal:
        return refusal.response
    except (web.HTTPException, ReviewUnavailable, TooManyAttempts) as error:
        return _problem_of(error, request)
    except Exception:  # noqa: BLE001 - one request that fails must not show its stack to its sender
        _log.exception("status page request failed", path=request.path)
        return problem_response(500, "Something is wrong with this page", "The controller's log has the error.")


def _problem_of(error: Exception, request: web.Request) -> web.Response:
    again = local_path(request.path_qs) if request.method == "GET" else "/"
    match error:
        case ReviewUnavailable():
            text = str(error)
            return problem_response(503, "Cannot tell who you are", f"{text[:1].upper()}{text[1:]}.", again=again)
        case TooManyAttempts(retry_after=seconds):
            return problem_response(429, "Too many tries", f"{error}.", again=again, retry_after=seconds)
        case web.HTTPNotFound():
            return problem_response(404, "Not found", "There is no such page.")
        case web.HTTPMethodNotAllowed(allowed_methods=methods):
            return _not_allowed(", ".join(sorted(methods)))
        case web.HTTPRequestEntityTooLarge():
            return problem_response(413, "Too large", "No token is as long as that.", again="/")
    raise error


def _status_json(problem: web.StreamResponse) -> web.Response:
    """The same as JSON, like a Status of the API server."""
    code = problem.status
    reason = HTTPStatus(code).phrase.replace(" ", "")
    document = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": problem[PROBLEM]}
    headers = problem.headers
    kept = {name: headers[name] for name in ("Allow", "Retry-After", "WWW-Authenticate") if name in headers}
    return json_response(document, code, **kept)


def _check(options: PageOptions, request: web.Request) -> None:
    """Raises PageRefused for another host, method or origin."""
    if not _is_known_host(options, request.host):
        # A name that another site has made to point here would let its page read this one.
        line = f"This page is served to {options.address} and localhost only, not by the name in the request."
        raise PageRefused(problem_response(421, "Another name", line))
    if request.method in ("GET", "HEAD"):
        return
    if request.method != "POST" or request.path not in POST_PATHS:
        raise PageRefused(_not_allowed("GET, HEAD"))
    if not _is_same_origin(request):
        line = "Another site has sent this form; nothing was done."
        raise PageRefused(problem_response(403, "Not from here", line, again="/"))


def _not_allowed(methods: str) -> web.Response:
    response = problem_response(405, "Only to be read", "This page changes nothing.", again="/")
    response.headers["Allow"] = methods
    return response


def _is_known_host(options: PageOptions, host: str) -> bool:
    """On loopback any site could have the browser use a name of its own for this page (DNS rebinding)."""
    if not options.local:
        return True
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return name == options.address or is_loopback(name)


def _is_same_origin(request: web.Request) -> bool:
    """Whether a form comes from this page, or from a client that is not a browser."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == request.host
