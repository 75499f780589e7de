"""The page as an HTTP application: its routes, and who meets whom behind them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from aiohttp import web

from controllers.statuspage import error_pages, html
from controllers.statuspage import feed as feeds
from controllers.statuspage.auth import AuthenticatedViewer, Authenticator, review_error_page
from controllers.statuspage.authz import Visibility, resolve_visibility
from controllers.statuspage.html import PageFrame
from controllers.statuspage.middleware import add_security_headers, html_response, security_middleware
from controllers.statuspage.options import PageOptions
from controllers.statuspage.query import parse
from controllers.statuspage.reviews import MAX_TOKEN_LENGTH, AccessReviewer, ReviewUnavailable
from controllers.statuspage.rows import JOBSETS, PODS, ListRight, RowKind, StatusRow
from controllers.statuspage.source import PageSource
from controllers.statuspage.sse import AccessCheck, EventStreams, PageFeed, TooManyStreams, check_access
from controllers.statuspage.view import StatusView

AuthenticatedHandler = Callable[[web.Request, AuthenticatedViewer], Awaitable[web.StreamResponse]]

REQUIRED_RIGHT = {RowKind.GANG: JOBSETS, RowKind.GROUP: PODS}
"""Without this right there is nothing to see at all."""
LIST_PATHS = {RowKind.GANG: "/", RowKind.GROUP: "/groups"}
NAV_ITEMS = {RowKind.GANG: "gangs", RowKind.GROUP: "groups"}


@dataclass(frozen=True, slots=True)
class PageContext:
    """What all handlers share."""

    source: PageSource
    view: StatusView
    list_cache: feeds.ListCache
    reviews: AccessReviewer
    authenticator: Authenticator
    streams: EventStreams

    def authenticated(self, handler: AuthenticatedHandler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """The handler, for those who get in, while there is something to show."""

        async def enter(request: web.Request) -> web.StreamResponse:
            guest = await self.authenticator.authenticate(request)
            if isinstance(guest, web.StreamResponse):
                return guest
            unlisted = self.source.fresh().unlisted
            if unlisted:
                return error_pages.not_synced_page(unlisted, request.path_qs)
            await self.view.refresh()
            try:
                return await handler(request, guest)
            except ReviewUnavailable as problem:
                return review_error_page(problem, request)

        return enter

    async def visibility(self, guest: AuthenticatedViewer, kind: RowKind, namespace: str) -> Visibility:
        """What he may see of a kind. Raises Unavailable."""
        rows = list(self.view.rows_of(kind))
        rights = dict.fromkeys((REQUIRED_RIGHT[kind], *(right for row in rows for right in row.needs)))
        return await resolve_visibility(self.reviews, guest.viewer, rights, {row.namespace for row in rows}, namespace)

    async def recheck_visibility(self, guest: AuthenticatedViewer, kind: RowKind, namespace: str) -> Visibility | None:
        """The same some time later; None if he may come in no more."""
        if not await self.authenticator.is_still_valid(guest):
            return None
        seen = await self.visibility(guest, kind, namespace)
        return seen if seen.has_right(REQUIRED_RIGHT[kind]) else None

    def page_frame(self, guest: AuthenticatedViewer, kind: RowKind, here: str, events: str) -> PageFrame:
        """What stands around a page."""
        return PageFrame(
            viewer=guest.viewer.name,
            session=bool(guest.session),
            fresh=self.source.fresh(),
            now=self.source.clock(),
            place=NAV_ITEMS[kind],
            here=here,
            events=events,
        )

    async def stream_events(
        self, request: web.Request, guest: AuthenticatedViewer, feed: PageFeed, check: AccessCheck
    ) -> web.StreamResponse:
        """The changes of a page that is open."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        if request.method == "HEAD":
            return web.Response(headers=response.headers)
        try:
            await self.streams.serve(request, response, guest.viewer.name, feed, partial(check_access, check))
        except TooManyStreams:
            return error_pages.too_many_streams_page(request.path_qs)
        return response


class ListHandlers:
    """The lists of gangs and of groups."""

    def __init__(self, parts: PageContext) -> None:
        self._parts = parts

    def routes(self) -> list[web.RouteDef]:
        """Of both."""
        found = []
        for kind, path, events in ((RowKind.GANG, "/", "/events"), (RowKind.GROUP, "/groups", "/groups/events")):
            found.append(web.get(path, self._parts.authenticated(partial(self._list, kind))))
            found.append(web.get(events, self._parts.authenticated(partial(self._live, kind))))
        return found

    async def _list(self, kind: RowKind, request: web.Request, guest: AuthenticatedViewer) -> web.StreamResponse:
        query = parse(kind, request.query)
        seen = await self._parts.visibility(guest, kind, query.namespace)
        if not seen.has_right(REQUIRED_RIGHT[kind]):
            return error_pages.forbidden_page(
                guest, [REQUIRED_RIGHT[kind]], query.namespace, LIST_PATHS[kind], limited=seen.limited
            )
        view = self._parts.list_cache.page_of(query, seen)
        text = html.list_page(
            self._parts.page_frame(guest, kind, view.query.link(page=view.query.page), view.query.events()),
            view,
            narrowed=_narrowed(seen, query.namespace),
            limited=seen.limited,
            groups_kept=self._parts.source.groups is not None,
        )
        return html_response(text)

    async def _live(self, kind: RowKind, request: web.Request, guest: AuthenticatedViewer) -> web.StreamResponse:
        query = parse(kind, request.query)
        kept = self._parts.source.groups is not None
        feed = feeds.ListFeed(self._parts.list_cache, query, self._parts.source.fresh, groups_kept=kept)
        check = partial(self._parts.recheck_visibility, guest, kind, query.namespace)
        return await self._parts.stream_events(request, guest, feed, check)


def _narrowed(seen: Visibility, namespace: str) -> str:
    hidden = [right.name for right in seen.namespaces_by_right if not seen.is_cluster_wide(right)]
    if not hidden or namespace:
        return ""
    return f"Shown is what is in namespaces in which you may list {', '.join(hidden)}."


def build_app(
    options: PageOptions, parts: PageContext, more: list[web.RouteDef], count: Callable[[int], None]
) -> web.Application:
    """All of it; `more` are the routes of single gangs."""
    app = web.Application(middlewares=[security_middleware(options, count)], client_max_size=MAX_TOKEN_LENGTH * 4)
    app.on_response_prepare.append(add_security_headers)
    app.add_routes([*ListHandlers(parts).routes(), *more])
    app.add_routes([web.get(f"/static/{name}", partial(_static, name)) for name in html.STATIC])
    app.add_routes(
        [
            web.get("/login", _to_first),
            web.post("/login", parts.authenticator.sign_in),
            web.post("/logout", parts.authenticator.sign_out),
        ]
    )
    return app


async def _static(name: str, _: web.Request) -> web.Response:
    return web.Response(body=html.static_file(name), headers={"Content-Type": html.STATIC[name]})


async def _to_first(_: web.Request) -> web.Response:
    return web.Response(status=303, headers={"Location": "/"})


__all__ = ["LIST_PATHS", "REQUIRED_RIGHT", "ListRight", "PageContext", "StatusRow", "build_app"]
