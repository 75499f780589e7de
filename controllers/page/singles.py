"""The permalinks: one gang with its timeline, one pod group."""

from collections.abc import Awaitable
from dataclasses import replace as replaced
from functools import partial

from aiohttp import web
from msgspec.structs import replace

from controllers.keys import Key
from controllers.page import pages, refusals
from controllers.page.app import FIRST, LISTS, Parts
from controllers.page.entrance import Guest
from controllers.page.feeds import GangFeed
from controllers.page.guard import PICTURE_POLICY, html
from controllers.page.pages import About
from controllers.page.rows import PODS, Kind, Row
from controllers.page.sights import Sight, sight
from controllers.page.timelines import Timelines
from jobset_gate.kube.errors import KubeError


class Singles:
    """Gangs and groups one by one."""

    def __init__(self, parts: Parts, timelines: Timelines) -> None:
        self._parts, self._timelines = parts, timelines

    def routes(self) -> list[web.RouteDef]:
        """All of them."""
        entered = self._parts.entered
        return [
            web.get("/gangs/{namespace}/{name}", entered(self._gang)),
            web.get("/gangs/{namespace}/{name}/events", entered(self._gang_live)),
            web.get("/gangs/{namespace}/{name}/timeline.svg", entered(self._picture)),
            web.get("/groups/{namespace}/{name}", entered(self._group)),
            web.get("/group-events/{namespace}/{id}", entered(self._group_live)),
            web.get("/group-timeline/{namespace}/{id}", entered(self._group_picture)),
        ]

    # --- Gangs -------------------------------------------------------------------------------------------------------

    async def _gang(self, request: web.Request, guest: Guest) -> web.StreamResponse:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        seen = await self._sight(guest, Kind.GANG, namespace)
        if not seen.anywhere(FIRST[Kind.GANG]):
            return refusals.forbidden(guest, [FIRST[Kind.GANG]], namespace, LISTS[Kind.GANG])
        row = self._parts.board.rows.get(f"gang-{namespace}.{name}")
        if row is None:
            return refusals.missing(f"gang {namespace}/{name}", LISTS[Kind.GANG])
        may = seen.anywhere(PODS)
        it = replaced(
            self.about(row.id),
            timeline=f"{row.path}/timeline.svg" if may else "",
            no_timeline="" if may else f"The timeline needs the right to list pods in namespace {namespace}.",
        )
        frame = self._parts.frame(guest, Kind.GANG, row.path, f"{row.path}/events")
        return html(pages.gang(frame, it))

    async def _gang_live(self, request: web.Request, guest: Guest) -> web.StreamResponse:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        return await self._live(request, guest, Kind.GANG, namespace, f"gang-{namespace}.{name}")

    async def _picture(self, request: web.Request, guest: Guest) -> web.StreamResponse:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        seen = await self._sight(guest, Kind.GANG, namespace)
        lacking = [right for right in (FIRST[Kind.GANG], PODS) if not seen.anywhere(right)]
        if lacking:
            return refusals.forbidden(guest, lacking, namespace, LISTS[Kind.GANG])
        gang = self._parts.source.index.look(Key(namespace, name))
        if gang is None:
            return refusals.missing(f"gang {namespace}/{name}", LISTS[Kind.GANG])
        return await _picture(self._timelines.of_gang(Key(namespace, name), gang), f"/gangs/{namespace}/{name}")

    # --- Groups ------------------------------------------------------------------------------------------------------

    async def _group(self, request: web.Request, guest: Guest) -> web.StreamResponse:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        way = request.query.get("way", "")
        seen = await self._sight(guest, Kind.GROUP, namespace)
        if not seen.anywhere(PODS):
            return refusals.forbidden(guest, [PODS], namespace, LISTS[Kind.GROUP])
        named = [row for row in self._parts.board.of(Kind.GROUP) if (row.namespace, row.name) == (namespace, name)]
        found = [row for row in named if not way or self._is(row, way)]
        shown = [row for row in found if seen.shows(row)]
        if found and not shown:
            lacking = [right for right in found[0].needs if not seen.anywhere(right)]
            return refusals.forbidden(guest, lacking, namespace, LISTS[Kind.GROUP])
        if not shown:
            return refusals.missing(f"pod group {namespace}/{name}", LISTS[Kind.GROUP])
        if len(shown) > 1:
            links = [(row.path, f"{row.name} ({row.way})") for row in shown]
            told = ["They belong to different designs; each has an address of its own:"]
            return html(pages.problem(f"Several groups are called {namespace}/{name}", told, links=links), 300)
        row = shown[0]
        frame = self._parts.frame(guest, Kind.GROUP, row.path, f"/group-events/{namespace}/{row.id}")
        return html(pages.gang(frame, replaced(self.about(row.id), timeline=f"/group-timeline/{namespace}/{row.id}")))

    async def _group_picture(self, request: web.Request, guest: Guest) -> web.StreamResponse:
        """Whose it is decides, not the namespace in the address."""
        namespace, id_ = request.match_info["namespace"], request.match_info["id"]
        seen = await self._sight(guest, Kind.GROUP, namespace)
        row, report = self._parts.board.rows.get(id_), self._parts.board.report(id_)
        if row is None or report is None or not seen.shows(row):
            return refusals.missing("such group, or you may not see it", LISTS[Kind.GROUP])
        return await _picture(self._timelines.of_group(report), row.path)

    async def _group_live(self, request: web.Request, guest: Guest) -> web.StreamResponse:
        namespace, id_ = request.match_info["namespace"], request.match_info["id"]
        return await self._live(request, guest, Kind.GROUP, namespace, id_)

    def _is(self, row: Row, way: str) -> bool:
        report = self._parts.board.report(row.id)
        return row.way == way or (report is not None and way in report.ways)

    # --- Both --------------------------------------------------------------------------------------------------------

    def about(self, id_: str) -> About:
        """A line that is on the board, with all there is to say of it."""
        board, fresh = self._parts.board, self._parts.source.fresh()
        told = board.explanation(id_)
        assert told is not None, id_  # noqa: S101 - every line has one
        return About(row=board.rows[id_], told=replace(told, controller=fresh.controller), report=board.report(id_))

    async def _sight(self, guest: Guest, kind: Kind, namespace: str) -> Sight:
        """In this namespace; of gangs with the right that their pictures need."""
        rows = [row for row in self._parts.board.of(kind) if row.namespace == namespace]
        rights = dict.fromkeys((FIRST[kind], PODS, *(right for row in rows for right in row.needs)))
        return await sight(self._parts.reviews, guest.viewer, rights, {namespace}, namespace)

    async def _live(
        self, request: web.Request, guest: Guest, kind: Kind, namespace: str, id_: str
    ) -> web.StreamResponse:
        feed = GangFeed(self._parts.board, id_, self._parts.source.fresh, self.about)
        return await self._parts.live(request, guest, feed, partial(self._parts.still, guest, kind, namespace))


async def _picture(drawing: Awaitable[bytes], back: str) -> web.Response:
    try:
        drawn = await drawing
    except KubeError as error:
        return html(pages.problem("The pods cannot be read", [f"{error}"], again=back), 503)
    headers = {"Content-Type": "image/svg+xml", "Content-Security-Policy": PICTURE_POLICY}
    return web.Response(body=drawn, headers=headers)
