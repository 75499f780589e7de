"""The page as an HTTP application: its routes, and who meets whom behind them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from aiohttp import web

from controllers.page import feeds, pages, refusals
from controllers.page.board import Board
from controllers.page.entrance import Entrance, Guest, unavailable
from controllers.page.guard import guarded, harden, html
from controllers.page.options import PageOptions
from controllers.page.pages import Frame
from controllers.page.query import parse
from controllers.page.reviews import LONGEST_TOKEN, Reviews, Unavailable
from controllers.page.rows import JOBSETS, PODS, Kind, Right, Row
from controllers.page.sights import Sight, sight
from controllers.page.source import Source
from controllers.page.streams import Check, Feed, Full, Streams, checked

Entered = Callable[[web.Request, Guest], Awaitable[web.StreamResponse]]

FIRST = {Kind.GANG: JOBSETS, Kind.GROUP: PODS}
"""Without this right there is nothing to see at all."""
LISTS = {Kind.GANG: "/", Kind.GROUP: "/groups"}
PLACES = {Kind.GANG: "gangs", Kind.GROUP: "groups"}


@dataclass(frozen=True, slots=True)
class Parts:
    """What all handlers share."""

    source: Source
    board: Board
    views: feeds.Views
    reviews: Reviews
    entrance: Entrance
    streams: Streams

    def entered(self, handler: Entered) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """The handler, for those who get in, while there is something to show."""

        async def enter(request: web.Request) -> web.StreamResponse:
            guest = await self.entrance.guest(request)
            if isinstance(guest, web.StreamResponse):
                return guest
            unlisted = self.source.fresh().unlisted
            if unlisted:
                return refusals.unlisted(unlisted, request.path_qs)
            await self.board.refresh()
            try:
                return await handler(request, guest)
            except Unavailable as problem:
                return unavailable(problem, request)

        return enter

    async def sight(self, guest: Guest, kind: Kind, namespace: str) -> Sight:
        """What he may see of a kind. Raises Unavailable."""
        rows = list(self.board.of(kind))
        rights = dict.fromkeys((FIRST[kind], *(right for row in rows for right in row.needs)))
        return await sight(self.reviews, guest.viewer, rights, {row.namespace for row in rows}, namespace)

    async def still(self, guest: Guest, kind: Kind, namespace: str) -> Sight | None:
        """The same some time later; None if he may come in no more."""
        if not await self.entrance.stays(guest):
            return None
        seen = await self.sight(guest, kind, namespace)
        return seen if seen.anywhere(FIRST[kind]) else None

    def frame(self, guest: Guest, kind: Kind, here: str, events: str) -> Frame:
        """What stands around a page."""
        return Frame(
            viewer=guest.viewer.name,
            session=bool(guest.session),
            fresh=self.source.fresh(),
            now=self.source.clock(),
            place=PLACES[kind],
            here=here,
            events=events,
        )

    async def live(self, request: web.Request, guest: Guest, feed: Feed, check: Check) -> web.StreamResponse:
        """The changes of a page that is open."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        if request.method == "HEAD":
            return web.Response(headers=response.headers)
        try:
            await self.streams.serve(request, response, guest.viewer.name, feed, partial(checked, check))
        except Full:
            return refusals.full(request.path_qs)
        return response


class Lists:
    """The lists of gangs and of groups."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def routes(self) -> list[web.RouteDef]:
        """Of both."""
        found = []
        for kind, path, events in ((Kind.GANG, "/", "/events"), (Kind.GROUP, "/groups", "/groups/events")):
            found.append(web.get(path, self._parts.entered(partial(self._list, kind))))
            found.append(web.get(events, self._parts.entered(partial(self._live, kind))))
        return found

    async def _list(self, kind: Kind, request: web.Request, guest: Guest) -> web.StreamResponse:
        query = parse(kind, request.query)
        seen = await self._parts.sight(guest, kind, query.namespace)
        if not seen.anywhere(FIRST[kind]):
            return refusals.forbidden(guest, [FIRST[kind]], query.namespace, LISTS[kind], limited=seen.limited)
        view = self._parts.views.of(query, seen)
        text = pages.listing(
            self._parts.frame(guest, kind, view.query.link(page=view.query.page), view.query.events()),
            view,
            narrowed=_narrowed(seen, query.namespace),
            limited=seen.limited,
            groups_kept=self._parts.source.groups is not None,
        )
        return html(text)

    async def _live(self, kind: Kind, request: web.Request, guest: Guest) -> web.StreamResponse:
        query = parse(kind, request.query)
        kept = self._parts.source.groups is not None
        feed = feeds.ListFeed(self._parts.views, query, self._parts.source.fresh, groups_kept=kept)
        check = partial(self._parts.still, guest, kind, query.namespace)
        return await self._parts.live(request, guest, feed, check)


def _narrowed(seen: Sight, namespace: str) -> str:
    hidden = [right.name for right in seen.places if not seen.everywhere(right)]
    if not hidden or namespace:
        return ""
    return f"Shown is what is in namespaces in which you may list {', '.join(hidden)}."


def application(
    options: PageOptions, parts: Parts, more: list[web.RouteDef], count: Callable[[int], None]
) -> web.Application:
    """All of it; `more` are the routes of single gangs."""
    app = web.Application(middlewares=[guarded(options, count)], client_max_size=LONGEST_TOKEN * 4)
    app.on_response_prepare.append(harden)
    app.add_routes([*Lists(parts).routes(), *more])
    app.add_routes([web.get(f"/static/{name}", partial(_static, name)) for name in pages.STATIC])
    app.add_routes(
        [
            web.get("/login", _to_first),
            web.post("/login", parts.entrance.sign_in),
            web.post("/logout", parts.entrance.sign_out),
        ]
    )
    return app


async def _static(name: str, _: web.Request) -> web.Response:
    return web.Response(body=pages.static(name), headers={"Content-Type": pages.STATIC[name]})


async def _to_first(_: web.Request) -> web.Response:
    return web.Response(status=303, headers={"Location": "/"})


__all__ = ["FIRST", "LISTS", "Parts", "Right", "Row", "application"]
