"""The page as an HTTP application: routes, what all handlers share, and the lists."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from itertools import islice
from typing import Final

from aiohttp import web

from controllers.statuspage import html
from controllers.statuspage.auth import (
    MAX_TOKEN_LENGTH,
    AccessReviewer,
    AuthenticatedViewer,
    Authenticator,
    ReviewUnavailable,
    TooManyAttempts,
    review_error_page,
)
from controllers.statuspage.authz import Visibility, resolve_visibility
from controllers.statuspage.html import PageFrame, html_response, problem_response
from controllers.statuspage.middleware import Handler, add_security_headers, security_middleware
from controllers.statuspage.options import PageOptions
from controllers.statuspage.query import MAX_QUERY, ListPage, ListQuery, parse_query
from controllers.statuspage.rows import GANGS, PODS, ListRight, RowKind, StatusRow, row_id
from controllers.statuspage.source import PageSource
from controllers.statuspage.sse import AccessCheck, EventStreams, ListCache, ListFeed, PageFeed, TooManyStreams
from controllers.statuspage.view import StatusView
from jobset_gate.barrier.model import GangKey
from jobset_gate.runtime.connections import ConnectionLimiter

MAX_COMPARED: Final = 200
"""Names that are compared with one that does not exist."""

AuthenticatedHandler = Callable[[web.Request, AuthenticatedViewer], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class PageContext:
    """What all handlers share."""

    source: PageSource
    view: StatusView
    list_cache: ListCache
    reviewer: AccessReviewer
    authenticator: Authenticator
    streams: EventStreams

    def authenticated(self, handler: AuthenticatedHandler) -> Handler:
        """The handler, for authenticated viewers, on a view that is up to date."""

        async def handle(request: web.Request) -> web.StreamResponse:
            login = await self.authenticator.authenticate(request)
            if isinstance(login, web.StreamResponse):
                return login
            if unlisted := self.source.fresh().unlisted:
                # An empty page would be wrong.
                lines = (f"This replica has not read the cluster yet: {unlisted}.", "It keeps trying.")
                title = "Nothing can be shown yet"
                return problem_response(503, title, *lines, again=request.path_qs, retry_after=2)
            await self.view.refresh()
            try:
                return await handler(request, login)
            except ReviewUnavailable as error:
                return review_error_page(error, request)

        return handle

    async def visibility(
        self, login: AuthenticatedViewer, kind: RowKind, namespace: str, *more: ListRight
    ) -> Visibility:
        """What the viewer may see of this kind; `more` rights are looked up, too. Raises ReviewUnavailable."""
        rows = list(self.view.rows_of(kind))
        rights = dict.fromkeys((kind.required, *more, *(right for row in rows for right in row.needs)))
        return await resolve_visibility(self.reviewer, login.viewer, rights, {row.namespace for row in rows}, namespace)

    async def list_page(
        self, login: AuthenticatedViewer, query: ListQuery
    ) -> tuple[ListPage, Visibility] | web.Response:
        """The page of a list; 403 to a viewer who may see none of it. Raises ReviewUnavailable."""
        kind, namespace = query.kind, query.namespace
        visibility = await self.visibility(login, kind, namespace)
        if not self.may_look(kind, visibility):
            return self.forbidden(login, kind, [kind.required], namespace, limited=visibility.limited)
        return self.list_cache.page_of(query, visibility), visibility

    def may_look(self, kind: RowKind, visibility: Visibility) -> bool:
        """Whether the viewer may see some of this kind: a row, or what there would be without any."""
        return visibility.has_any(kind.enough) or any(map(visibility.shows_row, self.view.rows_of(kind)))

    async def gang(self, login: AuthenticatedViewer, key: GangKey) -> tuple[StatusRow, Visibility] | web.Response:
        """One gang, with the right to list its pods looked up; else 403 or 404. Raises ReviewUnavailable."""
        kind, right = RowKind.GANG, GANGS[key.source]
        visibility = await self.visibility(login, kind, key.namespace, right, PODS)
        if not visibility.has_right(right):
            return self.forbidden(login, kind, [right], key.namespace)
        row = self.view.rows.get(row_id(key))
        return self.not_found(kind, key.namespace, key.name, right) if row is None else (row, visibility)

    def not_found(self, kind: RowKind, namespace: str, name: str, right: ListRight) -> web.Response:
        """404 to a viewer who has this right in this namespace, with names that are like this one."""
        what = "gang" if kind is RowKind.GANG else "pod group"
        mine = (row for row in self.view.rows_of(kind) if (row.namespace, row.needs) == (namespace, (right,)))
        there = {row.name: row for row in islice(mine, MAX_COMPARED)}
        like = get_close_matches(name[:MAX_QUERY], there, n=3, cutoff=0.4)
        links = [(there[it].path, f"{namespace}/{it}") for it in like]
        links.append((ListQuery(kind, namespace=namespace).link(), f"All {what}s in namespace {namespace}"))
        line = "It was deleted, or was never there, or does not ask for a gate. Names are current ones."
        said = (line, "Did you mean one of these?") if like else (line,)
        return problem_response(404, f"There is no {what} {namespace}/{name}", *said, links=links)

    def forbidden(
        self,
        login: AuthenticatedViewer,
        kind: RowKind,
        rights: Sequence[ListRight],
        namespace: str,
        *,
        limited: bool = False,
    ) -> web.Response:
        """403: which of these rights is missing, and how to get it."""
        kinds = " and ".join(it.name for it in rights)
        where = f"in namespace {namespace}" if namespace else "in all namespaces"
        lines = [f"You are signed in as {login.viewer.name}, who may not list {kinds} {where}."]
        if limited:
            lines.append("There are too many namespaces to find out in which of them you may: name one.")
        elif not namespace:
            lines.append("Nor may you in any namespace with something to show. If you may in another, name it.")
        lines.append("A cluster administrator can grant that right by a RoleBinding; this shows whether you have it:")
        flag = f"-n {namespace}" if namespace else "-A"
        return problem_response(
            403,
            f"You may not list {kinds} {where}",
            *lines,
            again=kind.path,
            commands=[f"kubectl auth can-i list {it.name} {flag}" for it in rights],
            session=bool(login.session),
            ask_namespace=kind.path,
        )

    def page_frame(self, login: AuthenticatedViewer, kind: RowKind, here: str, events: str) -> PageFrame:
        """What a page has around its content."""
        now, fresh = self.source.clock(), self.source.fresh()
        return PageFrame(login.viewer.name, bool(login.session), fresh, now, kind, here, events)

    async def stream_events(
        self, request: web.Request, login: AuthenticatedViewer, feed: PageFeed, kind: RowKind, namespace: str
    ) -> web.StreamResponse:
        """The updates of an open page."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        if request.method == "HEAD":
            return web.Response(headers=response.headers)
        check: AccessCheck = partial(self._recheck, login, kind, namespace)
        try:
            await self.streams.serve(request, response, login.viewer.name, feed, check)
        except TooManyStreams:
            line = "Too many pages are open; this one is not updated automatically."
            return problem_response(503, "Too many open pages", line, again=request.path_qs, retry_after=30)
        return response

    async def _recheck(self, login: AuthenticatedViewer, kind: RowKind, namespace: str) -> Visibility | None:
        """The visibility some time later; None if session, token or right are gone, or the API server cannot tell."""
        try:
            if not await self.authenticator.is_still_valid(login):
                return None
            visibility = await self.visibility(login, kind, namespace)
        except (ReviewUnavailable, TooManyAttempts):
            return None
        return visibility if self.may_look(kind, visibility) else None


class ListHandlers:
    """The lists of gangs and of pod groups."""

    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._groups_kept = context.source.groups is not None

    def routes(self) -> list[web.RouteDef]:
        """The routes of both."""
        found = []
        for kind in RowKind:
            found.append(web.get(kind.path, self._context.authenticated(partial(self._list, kind))))
            found.append(web.get(kind.events_path, self._context.authenticated(partial(self._events, kind))))
        return found

    async def _list(self, kind: RowKind, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        context = self._context
        found = await context.list_page(login, parse_query(kind, request.query))
        if isinstance(found, web.Response):
            return found
        page, visibility = found
        text = html.list_page(
            context.page_frame(login, kind, page.query.link(page=page.query.page), page.query.events()),
            page,
            narrowed=_narrowed(visibility, page.query.namespace),
            limited=visibility.limited,
            groups_kept=self._groups_kept,
        )
        return html_response(text)

    async def _events(self, kind: RowKind, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        context, query = self._context, parse_query(kind, request.query)
        feed = ListFeed(context.list_cache, query, context.source.fresh, groups_kept=self._groups_kept)
        return await context.stream_events(request, login, feed, kind, query.namespace)


def build_app(
    options: PageOptions,
    context: PageContext,
    detail_routes: list[web.RouteDef],
    on_response: Callable[[int], None],
    connections: ConnectionLimiter,
) -> web.Application:
    """The whole application. `on_response` gets each response's code."""
    middlewares = [connections.middleware, security_middleware(options, on_response)]
    app = web.Application(middlewares=middlewares, client_max_size=MAX_TOKEN_LENGTH * 4)
    app.on_response_prepare.append(add_security_headers)
    app.on_response_prepare.append(connections.release_stream)
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
    if not visibility.restricted or namespace:
        return ""
    kinds = ", ".join(right.name for right in visibility.restricted)
    return f"Shown is what is in namespaces in which you may list {kinds}."


async def _static(name: str, _: web.Request) -> web.Response:
    return web.Response(body=html.static_file(name), headers={"Content-Type": html.STATIC[name]})


async def _redirect_to_list(_: web.Request) -> web.Response:
    return web.Response(status=303, headers={"Location": "/"})
