"""The page as an HTTP application: routes, what all handlers share, and the lists."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from aiohttp import web

from controllers.statuspage import html
from controllers.statuspage.auth import (
    MAX_TOKEN_LENGTH,
    AccessReviewer,
    AuthenticatedViewer,
    Authenticator,
    ReviewUnavailable,
    review_error_page,
)
from controllers.statuspage.authz import Visibility, resolve_visibility
from controllers.statuspage.html import PageFrame, html_response
from controllers.statuspage.middleware import add_security_headers, security_middleware
from controllers.statuspage.options import PageOptions
from controllers.statuspage.rows import JOBSETS, PODS, ListRight, RowKind, parse_query
from controllers.statuspage.source import PageSource
from controllers.statuspage.sse import (
    AccessCheck,
    EventStreams,
    ListCache,
    ListFeed,
    PageFeed,
    TooManyStreams,
    check_access,
)
from controllers.statuspage.view import StatusView

AuthenticatedHandler = Callable[[web.Request, AuthenticatedViewer], Awaitable[web.StreamResponse]]

REQUIRED_RIGHT = {RowKind.GANG: JOBSETS, RowKind.GROUP: PODS}
"""Without this right there is nothing to see at all."""
LIST_PATHS = {RowKind.GANG: "/", RowKind.GROUP: "/groups"}
EVENT_PATHS = {RowKind.GANG: "/events", RowKind.GROUP: "/groups/events"}
NAV_ITEMS = {RowKind.GANG: "gangs", RowKind.GROUP: "groups"}


@dataclass(frozen=True, slots=True)
class PageContext:
    """What all handlers share."""

    source: PageSource
    view: StatusView
    list_cache: ListCache
    reviewer: AccessReviewer
    authenticator: Authenticator
    streams: EventStreams

    def authenticated(self, handler: AuthenticatedHandler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """The handler, for authenticated viewers, on a view that is up to date."""

        async def handle(request: web.Request) -> web.StreamResponse:
            login = await self.authenticator.authenticate(request)
            if isinstance(login, web.StreamResponse):
                return login
            unlisted = self.source.fresh().unlisted
            if unlisted:
                return html.not_synced_page(unlisted, request.path_qs)
            await self.view.refresh()
            try:
                return await handler(request, login)
            except ReviewUnavailable as error:
                return review_error_page(error, request)

        return handle

    async def visibility(self, login: AuthenticatedViewer, kind: RowKind, namespace: str) -> Visibility:
        """What the viewer may see of this kind. Raises ReviewUnavailable."""
        rows = list(self.view.rows_of(kind))
        rights = dict.fromkeys((REQUIRED_RIGHT[kind], *(right for row in rows for right in row.needs)))
        return await resolve_visibility(self.reviewer, login.viewer, rights, {row.namespace for row in rows}, namespace)

    async def recheck_visibility(self, login: AuthenticatedViewer, kind: RowKind, namespace: str) -> Visibility | None:
        """The same some time later; None if the viewer has lost the session, the token or the right."""
        if not await self.authenticator.is_still_valid(login):
            return None
        visibility = await self.visibility(login, kind, namespace)
        return visibility if visibility.has_right(REQUIRED_RIGHT[kind]) else None

    def forbidden(
        self,
        login: AuthenticatedViewer,
        kind: RowKind,
        rights: Sequence[ListRight],
        namespace: str,
        *,
        limited: bool = False,
    ) -> web.Response:
        """403 for these rights."""
        return html.forbidden_page(
            login.viewer.name, login.session, rights, namespace, LIST_PATHS[kind], limited=limited
        )

    def page_frame(self, login: AuthenticatedViewer, kind: RowKind, here: str, events: str) -> PageFrame:
        """What a page has around its content."""
        return PageFrame(
            viewer=login.viewer.name,
            session=bool(login.session),
            fresh=self.source.fresh(),
            now=self.source.clock(),
            place=NAV_ITEMS[kind],
            here=here,
            events=events,
        )

    async def stream_events(
        self, request: web.Request, login: AuthenticatedViewer, feed: PageFeed, check: AccessCheck
    ) -> web.StreamResponse:
        """The updates of an open page."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        if request.method == "HEAD":
            return web.Response(headers=response.headers)
        try:
            await self.streams.serve(request, response, login.viewer.name, feed, partial(check_access, check))
        except TooManyStreams:
            return html.too_many_streams_page(request.path_qs)
        return response


class ListHandlers:
    """The lists of gangs and of pod groups."""

    def __init__(self, context: PageContext) -> None:
        self._context = context

    def routes(self) -> list[web.RouteDef]:
        """The routes of both."""
        found = []
        for kind in RowKind:
            found.append(web.get(LIST_PATHS[kind], self._context.authenticated(partial(self._list, kind))))
            found.append(web.get(EVENT_PATHS[kind], self._context.authenticated(partial(self._events, kind))))
        return found

    async def _list(self, kind: RowKind, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        context, query = self._context, parse_query(kind, request.query)
        visibility = await context.visibility(login, kind, query.namespace)
        if not visibility.has_right(REQUIRED_RIGHT[kind]):
            return context.forbidden(login, kind, [REQUIRED_RIGHT[kind]], query.namespace, limited=visibility.limited)
        page = context.list_cache.page_of(query, visibility)
        text = html.list_page(
            context.page_frame(login, kind, page.query.link(page=page.query.page), page.query.events()),
            page,
            narrowed=_narrowed(visibility, query.namespace),
            limited=visibility.limited,
            groups_kept=context.source.groups is not None,
        )
        return html_response(text)

    async def _events(self, kind: RowKind, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        context, query = self._context, parse_query(kind, request.query)
        kept = context.source.groups is not None
        feed = ListFeed(context.list_cache, query, context.source.fresh, groups_kept=kept)
        check = partial(context.recheck_visibility, login, kind, query.namespace)
        return await context.stream_events(request, login, feed, check)


def build_app(
    options: PageOptions, context: PageContext, detail_routes: list[web.RouteDef], on_response: Callable[[int], None]
) -> web.Application:
    """The whole application. `on_response` gets each response's code."""
    middlewares = [security_middleware(options, on_response)]
    app = web.Application(middlewares=middlewares, client_max_size=MAX_TOKEN_LENGTH * 4)
    app.on_response_prepare.append(add_security_headers)
    app.add_routes([*ListHandlers(context).routes(), *detail_routes])
    app.add_routes([web.get(f"/static/{name}", partial(_static, name)) for name in html.STATIC])
    app.add_routes(
        [
            web.get("/login", _redirect_to_list),
            web.post("/login", context.authenticator.sign_in),
            web.post("/logout", context.authenticator.sign_out),
        ]
    )
    return app


def _narrowed(visibility: Visibility, namespace: str) -> str:
    hidden = [right.name for right in visibility.namespaces_by_right if not visibility.is_cluster_wide(right)]
    if not hidden or namespace:
        return ""
    return f"Shown is what is in namespaces in which you may list {', '.join(hidden)}."


async def _static(name: str, _: web.Request) -> web.Response:
    return web.Response(body=html.static_file(name), headers={"Content-Type": html.STATIC[name]})


async def _redirect_to_list(_: web.Request) -> web.Response:
    return web.Response(status=303, headers={"Location": "/"})
