"""The permalinks: one gang with its timeline, one pod group."""

from collections.abc import Awaitable
from dataclasses import replace as replaced
from functools import partial

from aiohttp import web
from msgspec.structs import replace

from controllers.statuspage import error_pages, html
from controllers.statuspage.app import LIST_PATHS, REQUIRED_RIGHT, PageContext
from controllers.statuspage.auth import AuthenticatedViewer
from controllers.statuspage.authz import Visibility, resolve_visibility
from controllers.statuspage.feed import GangFeed
from controllers.statuspage.html import StatusDetail
from controllers.statuspage.middleware import PICTURE_POLICY, html_response
from controllers.statuspage.rows import PODS, RowKind, StatusRow
from controllers.statuspage.timelines import TimelineRenderer
from jobset_gate.barrier.model import GangKey
from jobset_gate.kube.errors import KubeError


class DetailHandlers:
    """Gangs and groups one by one."""

    def __init__(self, parts: PageContext, timelines: TimelineRenderer) -> None:
        self._parts, self._timelines = parts, timelines

    def routes(self) -> list[web.RouteDef]:
        """All of them."""
        entered = self._parts.authenticated
        return [
            web.get("/gangs/{namespace}/{name}", entered(self._gang)),
            web.get("/gangs/{namespace}/{name}/events", entered(self._gang_live)),
            web.get("/gangs/{namespace}/{name}/timeline.svg", entered(self._picture)),
            web.get("/groups/{namespace}/{name}", entered(self._group)),
            web.get("/group-events/{namespace}/{id}", entered(self._group_live)),
            web.get("/group-timeline/{namespace}/{id}", entered(self._group_picture)),
        ]

    # --- Gangs -------------------------------------------------------------------------------------------------------

    async def _gang(self, request: web.Request, guest: AuthenticatedViewer) -> web.StreamResponse:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        seen = await self._sight(guest, RowKind.GANG, namespace)
        if not seen.has_right(REQUIRED_RIGHT[RowKind.GANG]):
            return error_pages.forbidden_page(
                guest, [REQUIRED_RIGHT[RowKind.GANG]], namespace, LIST_PATHS[RowKind.GANG]
            )
        row = self._parts.view.rows.get(f"gang-{namespace}.{name}")
        if row is None:
            return error_pages.not_found_page(f"gang {namespace}/{name}", LIST_PATHS[RowKind.GANG])
        may = seen.has_right(PODS)
        it = replaced(
            self.detail_of(row.id),
            timeline=f"{row.path}/timeline.svg" if may else "",
            no_timeline="" if may else f"The timeline needs the right to list pods in namespace {namespace}.",
        )
        frame = self._parts.page_frame(guest, RowKind.GANG, row.path, f"{row.path}/events")
        return html_response(html.detail_page(frame, it))

    async def _gang_live(self, request: web.Request, guest: AuthenticatedViewer) -> web.StreamResponse:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        return await self._live(request, guest, RowKind.GANG, namespace, f"gang-{namespace}.{name}")

    async def _picture(self, request: web.Request, guest: AuthenticatedViewer) -> web.StreamResponse:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        seen = await self._sight(guest, RowKind.GANG, namespace)
        lacking = [right for right in (REQUIRED_RIGHT[RowKind.GANG], PODS) if not seen.has_right(right)]
        if lacking:
            return error_pages.forbidden_page(guest, lacking, namespace, LIST_PATHS[RowKind.GANG])
        gang = self._parts.source.index.peek(GangKey(namespace, name))
        if gang is None:
            return error_pages.not_found_page(f"gang {namespace}/{name}", LIST_PATHS[RowKind.GANG])
        return await _picture(self._timelines.gang_svg(GangKey(namespace, name), gang), f"/gangs/{namespace}/{name}")

    # --- Groups ------------------------------------------------------------------------------------------------------

    async def _group(self, request: web.Request, guest: AuthenticatedViewer) -> web.StreamResponse:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        way = request.query.get("way", "")
        seen = await self._sight(guest, RowKind.GROUP, namespace)
        if not seen.has_right(PODS):
            return error_pages.forbidden_page(guest, [PODS], namespace, LIST_PATHS[RowKind.GROUP])
        named = [
            row for row in self._parts.view.rows_of(RowKind.GROUP) if (row.namespace, row.name) == (namespace, name)
        ]
        found = [row for row in named if not way or self._is(row, way)]
        shown = [row for row in found if seen.shows_row(row)]
        if found and not shown:
            lacking = [right for right in found[0].needs if not seen.has_right(right)]
            return error_pages.forbidden_page(guest, lacking, namespace, LIST_PATHS[RowKind.GROUP])
        if not shown:
            return error_pages.not_found_page(f"pod group {namespace}/{name}", LIST_PATHS[RowKind.GROUP])
        if len(shown) > 1:
            links = [(row.path, f"{row.name} ({row.way})") for row in shown]
            told = ["They belong to different designs; each has an address of its own:"]
            return html_response(
                html.problem_page(f"Several groups are called {namespace}/{name}", told, links=links), 300
            )
        row = shown[0]
        frame = self._parts.page_frame(guest, RowKind.GROUP, row.path, f"/group-events/{namespace}/{row.id}")
        return html_response(
            html.detail_page(frame, replaced(self.detail_of(row.id), timeline=f"/group-timeline/{namespace}/{row.id}"))
        )

    async def _group_picture(self, request: web.Request, guest: AuthenticatedViewer) -> web.StreamResponse:
        """Whose it is decides, not the namespace in the address."""
        namespace, id_ = request.match_info["namespace"], request.match_info["id"]
        seen = await self._sight(guest, RowKind.GROUP, namespace)
        row, report = self._parts.view.rows.get(id_), self._parts.view.report(id_)
        if row is None or report is None or not seen.shows_row(row):
            return error_pages.not_found_page("such group, or you may not see it", LIST_PATHS[RowKind.GROUP])
        return await _picture(self._timelines.pod_group_svg(report), row.path)

    async def _group_live(self, request: web.Request, guest: AuthenticatedViewer) -> web.StreamResponse:
        namespace, id_ = request.match_info["namespace"], request.match_info["id"]
        return await self._live(request, guest, RowKind.GROUP, namespace, id_)

    def _is(self, row: StatusRow, way: str) -> bool:
        report = self._parts.view.report(row.id)
        return row.way == way or (report is not None and way in report.formats)

    # --- Both --------------------------------------------------------------------------------------------------------

    def detail_of(self, id_: str) -> StatusDetail:
        """A line that is on the board, with all there is to say of it."""
        board, fresh = self._parts.view, self._parts.source.fresh()
        told = board.explanation(id_)
        assert told is not None, id_  # noqa: S101 - every line has one
        return StatusDetail(
            row=board.rows[id_], told=replace(told, controller=fresh.controller), report=board.report(id_)
        )

    async def _sight(self, guest: AuthenticatedViewer, kind: RowKind, namespace: str) -> Visibility:
        """In this namespace; of gangs with the right that their pictures need."""
        rows = [row for row in self._parts.view.rows_of(kind) if row.namespace == namespace]
        rights = dict.fromkeys((REQUIRED_RIGHT[kind], PODS, *(right for row in rows for right in row.needs)))
        return await resolve_visibility(self._parts.reviews, guest.viewer, rights, {namespace}, namespace)

    async def _live(
        self, request: web.Request, guest: AuthenticatedViewer, kind: RowKind, namespace: str, id_: str
    ) -> web.StreamResponse:
        feed = GangFeed(self._parts.view, id_, self._parts.source.fresh, self.detail_of)
        return await self._parts.stream_events(
            request, guest, feed, partial(self._parts.recheck_visibility, guest, kind, namespace)
        )


async def _picture(drawing: Awaitable[bytes], back: str) -> web.Response:
    try:
        drawn = await drawing
    except KubeError as error:
        return html_response(html.problem_page("The pods cannot be read", [f"{error}"], again=back), 503)
    headers = {"Content-Type": "image/svg+xml", "Content-Security-Policy": PICTURE_POLICY}
    return web.Response(body=drawn, headers=headers)
