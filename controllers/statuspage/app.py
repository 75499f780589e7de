"""The page as an HTTP application: routes, what all handlers share, and the lists."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from aiohttp import web

from controllers.statuspage import html
from controllers.statuspage.auth import (
    MAX_TOKEN_LENGTH,
    AccessReviewer,
    AuthenticatedViewer,
    Authenticator,
    ReviewUnavailable,
    TooManyAttempts,
    Visibility,
)
from controllers.statuspage.html import Frame, PageRefused, html_response, problem_response
from controllers.statuspage.middleware import PageOptions, add_security_headers, security_middleware
from controllers.statuspage.query import ListPage, ListQuery, parse_query
from controllers.statuspage.rows import GANGS, PODS, ListRight, RowKind, StatusRow, row_id
from controllers.statuspage.source import PageSource
from controllers.statuspage.sse import EventStreams, ListFeed, NextUpdate, TooManyStreams
from controllers.statuspage.view import StatusView
from jobset_gate.barrier.model import GangKey, GangSnapshot
from jobset_gate.runtime.connections import ConnectionLimiter

AuthenticatedHandler = Callable[[web.Request, AuthenticatedViewer], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class PageContext:
    """What all handlers share. Its methods raise PageRefused and ReviewUnavailable."""

    source: PageSource
    view: StatusView
    reviewer: AccessReviewer
    authenticator: Authenticator
    streams: EventStreams

    def get(self, path: str, handler: AuthenticatedHandler) -> web.RouteDef:
        """The route of a handler for authenticated viewers, on a view that is up to date."""

        async def handle(request: web.Request) -> web.StreamResponse:
            login = await self.authenticator.authenticate(request)
            if unlisted := self.source.fresh().unlisted:
                # An empty page would be wrong.
                lines = (f"This replica has not read the cluster yet: {unlisted}.", "It keeps trying.")
                title = "Nothing can be shown yet"
                return problem_response(503, title, *lines, again=request.path_qs, retry_after=2)
            await self.view.refresh()
            return await handler(request, login)

        return web.get(path, handle)

    async def visibility(
        self, login: AuthenticatedViewer, kind: RowKind, namespace: str, *more: ListRight
    ) -> Visibility:
        """What the viewer may see of this kind; `more` rights are looked up, too."""
        rows = list(self.view.rows_of(kind))
        rights = dict.fromkeys((kind.required, *more, *(right for row in rows for right in row.needs)))
        return await self.reviewer.visibility(login.viewer, rights, {row.namespace for row in rows}, namespace)

    async def list_page(self, login: AuthenticatedViewer, query: ListQuery) -> tuple[ListPage, Visibility]:
        """The page of a list; refused to a viewer who may see none of it."""
        kind, namespace = query.kind, query.namespace
        visibility = await self.visibility(login, kind, namespace)
        if not self._may_look(kind, visibility):
            self.forbid(login, kind, [kind.required], namespace, limited=visibility.limited)
        return self.view.page_of(query, visibility), visibility

    def _may_look(self, kind: RowKind, visibility: Visibility) -> bool:
        """Whether the viewer may see some of this kind: a row, or what there would be without any."""
        return any(map(visibility.has_right, kind.enough)) or any(map(visibility.shows_row, self.view.rows_of(kind)))

    async def gang(
        self, login: AuthenticatedViewer, key: GangKey, *needed: ListRight
    ) -> tuple[StatusRow, GangSnapshot, Visibility]:
        """One gang to a viewer with these rights and that to list its kind; the right to list pods is looked up."""
        kind, right = RowKind.GANG, GANGS[key.source]
        visibility = await self.visibility(login, kind, key.namespace, right, PODS)
        if missing := [it for it in dict.fromkeys((right, *needed)) if not visibility.has_right(it)]:
            self.forbid(login, kind, missing, key.namespace)
        row, seen = self.view.rows.get(row_id(key)), self.source.index.peek(key)
        if row is None or seen is None:
            self.report_missing(kind, key.namespace, key.name)
        return row, seen, visibility

    def report_missing(self, kind: RowKind, namespace: str, name: str) -> NoReturn:
        """404 to a viewer who may see this kind in this namespace."""
        what = kind.noun.removesuffix("s")
        links = [(ListQuery(kind, namespace=namespace).link(), f"All {what}s in namespace {namespace}")]
        line = "It was deleted, or was never there, or does not ask for a gate."
        raise PageRefused(problem_response(404, f"There is no {what} {namespace}/{name}", line, links=links))

    def forbid(
        self,
        login: AuthenticatedViewer,
        kind: RowKind,
        rights: Sequence[ListRight],
        namespace: str,
        *,
        limited: bool = False,
    ) -> NoReturn:
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
        response = problem_response(
            403,
            f"You may not list {kinds} {where}",
            *lines,
            again=kind.path,
            commands=[f"kubectl auth can-i list {it.name} {flag}" for it in rights],
            session=bool(login.session),
            ask_namespace=kind.path,
        )
        raise PageRefused(response)

    def page_frame(self, login: AuthenticatedViewer, kind: RowKind, here: str, events: str) -> Frame:
        """`here`: the address of the page; `events`: that of its event stream. Who has a session may sign out."""
        its: Frame = {"kind": kind, "here": here, "events": events, "session": bool(login.session)}
        return its | {"viewer": login.viewer.name, "fresh": self.source.fresh(), "now": self.source.clock()}

    async def stream_events(
        self, request: web.Request, login: AuthenticatedViewer, next_update: NextUpdate, kind: RowKind, namespace: str
    ) -> web.StreamResponse:
        """The updates of an open page."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        if request.method == "HEAD":
            return web.Response(headers=response.headers)
        check = partial(self._recheck, login, kind, namespace)
        try:
            await self.streams.serve(request, response, login.viewer.name, next_update, check)
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
        return visibility if self._may_look(kind, visibility) else None


async def _list(
    context: PageContext, kind: RowKind, request: web.Request, login: AuthenticatedViewer
) -> web.StreamResponse:
    page, visibility = await context.list_page(login, parse_query(kind, request.query))
    text = html.list_page(
        context.page_frame(login, kind, page.query.link(page=page.query.page), page.query.events()),
        page,
        narrowed="" if page.query.namespace else ", ".join(right.name for right in visibility.restricted),
        limited=visibility.limited,
    )
    return html_response(text)


async def _list_events(
    context: PageContext, kind: RowKind, request: web.Request, login: AuthenticatedViewer
) -> web.StreamResponse:
    query = parse_query(kind, request.query)
    feed = ListFeed(context.view, query, context.source.fresh)
    return await context.stream_events(request, login, feed.next_update, kind, query.namespace)


def build_app(
    options: PageOptions,
    context: PageContext,
    more_routes: list[web.RouteDef],
    on_response: Callable[[int], None],
    connections: ConnectionLimiter,
) -> web.Application:
    """The whole application. `on_response` gets each response's code."""
    middlewares = [connections.middleware, security_middleware(options, on_response)]
    app = web.Application(middlewares=middlewares, client_max_size=MAX_TOKEN_LENGTH * 4)
    app.on_response_prepare.append(add_security_headers)
    app.on_response_prepare.append(connections.release_stream)
    for kind in RowKind:
        app.add_routes([context.get(kind.path, partial(_list, context, kind))])
        app.add_routes([context.get(kind.events_path, partial(_list_events, context, kind))])
    app.add_routes(more_routes)
    app.add_routes([web.get(f"/static/{name}", partial(_static, name)) for name in html.STATIC])
    app.add_routes(
        [
            web.get("/login", _redirect_to_list),
            web.post("/login", context.authenticator.sign_in),
            web.post("/logout", context.authenticator.sign_out),
        ]
    )
    return app


async def _static(name: str, _: web.Request) -> web.Response:
    body = await asyncio.to_thread((html.FOLDER / "static" / name).read_bytes)
    return web.Response(body=body, headers={"Content-Type": html.STATIC[name]})


async def _redirect_to_list(_: web.Request) -> web.Response:
    return web.Response(status=303, headers={"Location": "/"})
