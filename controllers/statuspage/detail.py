"""The permalinks: one gang or one pod group, its events and its timeline."""

from collections.abc import Awaitable
from dataclasses import replace as with_fields
from functools import partial

from aiohttp import web
from msgspec.structs import replace

from controllers.statuspage import html
from controllers.statuspage.app import LIST_PATHS, REQUIRED_RIGHT, PageContext
from controllers.statuspage.auth import AuthenticatedViewer
from controllers.statuspage.authz import Visibility, resolve_visibility
from controllers.statuspage.html import StatusDetail, html_response, not_found_page, problem_response
from controllers.statuspage.middleware import PICTURE_POLICY
from controllers.statuspage.rows import PODS, RowKind, StatusRow
from controllers.statuspage.sse import DetailFeed
from controllers.statuspage.timelines import TimelineRenderer
from jobset_gate.barrier.model import GangKey
from jobset_gate.kube.errors import KubeError


class DetailHandlers:
    """Gangs and pod groups one by one."""

    def __init__(self, context: PageContext, timelines: TimelineRenderer) -> None:
        self._context, self._timelines = context, timelines

    def routes(self) -> list[web.RouteDef]:
        """All routes."""
        authenticated = self._context.authenticated
        return [
            web.get("/gangs/{namespace}/{name}", authenticated(self._gang)),
            web.get("/gangs/{namespace}/{name}/events", authenticated(self._gang_events)),
            web.get("/gangs/{namespace}/{name}/timeline.svg", authenticated(self._gang_timeline)),
            web.get("/groups/{namespace}/{name}", authenticated(self._group)),
            web.get("/group-events/{namespace}/{id}", authenticated(self._group_events)),
            web.get("/group-timeline/{namespace}/{id}", authenticated(self._group_timeline)),
        ]

    # --- Gangs -------------------------------------------------------------------------------------------------------

    async def _gang(self, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        kind, key = RowKind.GANG, GangKey(**request.match_info)
        visibility = await self._visibility(login, kind, key.namespace)
        if not visibility.has_right(REQUIRED_RIGHT[kind]):
            return self._context.forbidden(login, kind, [REQUIRED_RIGHT[kind]], key.namespace)
        row = self._context.view.rows.get(_row_id(key))
        if row is None:
            return not_found_page(f"gang {key}", LIST_PATHS[kind])
        may = visibility.has_right(PODS)
        detail = with_fields(
            self.detail_of(row.id),
            timeline=f"{row.path}/timeline.svg" if may else "",
            no_timeline="" if may else f"The timeline needs the right to list pods in namespace {key.namespace}.",
        )
        frame = self._context.page_frame(login, kind, row.path, f"{row.path}/events")
        return html_response(html.detail_page(frame, detail))

    async def _gang_events(self, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        key = GangKey(**request.match_info)
        return await self._events(request, login, RowKind.GANG, key.namespace, _row_id(key))

    async def _gang_timeline(self, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        kind, key = RowKind.GANG, GangKey(**request.match_info)
        visibility = await self._visibility(login, kind, key.namespace)
        missing = [right for right in (REQUIRED_RIGHT[kind], PODS) if not visibility.has_right(right)]
        if missing:
            return self._context.forbidden(login, kind, missing, key.namespace)
        gang = self._context.source.index.peek(key)
        if gang is None:
            return not_found_page(f"gang {key}", LIST_PATHS[kind])
        return await _svg_response(self._timelines.gang_svg(key, gang), f"/gangs/{key}")

    # --- Pod groups --------------------------------------------------------------------------------------------------

    async def _group(self, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        kind, namespace, name = RowKind.GROUP, request.match_info["namespace"], request.match_info["name"]
        way = request.query.get("way", "")
        visibility = await self._visibility(login, kind, namespace)
        if not visibility.has_right(PODS):
            return self._context.forbidden(login, kind, [PODS], namespace)
        named = [row for row in self._context.view.rows_of(kind) if (row.namespace, row.name) == (namespace, name)]
        found = [row for row in named if not way or self._has_format(row, way)]
        shown = [row for row in found if visibility.shows_row(row)]
        if found and not shown:
            missing = [right for right in found[0].needs if not visibility.has_right(right)]
            return self._context.forbidden(login, kind, missing, namespace)
        if not shown:
            return not_found_page(f"pod group {namespace}/{name}", LIST_PATHS[kind])
        if len(shown) > 1:
            links = [(row.path, f"{row.name} ({row.way})") for row in shown]
            line = "They have different formats; each has an address of its own:"
            return problem_response(300, f"Several groups are called {namespace}/{name}", line, links=links)
        row = shown[0]
        frame = self._context.page_frame(login, kind, row.path, f"/group-events/{namespace}/{row.id}")
        detail = with_fields(self.detail_of(row.id), timeline=f"/group-timeline/{namespace}/{row.id}")
        return html_response(html.detail_page(frame, detail))

    async def _group_timeline(self, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        """The namespace of the group counts, not the one in the address."""
        namespace, row_id = request.match_info["namespace"], request.match_info["id"]
        visibility = await self._visibility(login, RowKind.GROUP, namespace)
        row, report = self._context.view.rows.get(row_id), self._context.view.report(row_id)
        if row is None or report is None or not visibility.shows_row(row):
            return not_found_page("such group, or you may not see it", LIST_PATHS[RowKind.GROUP])
        return await _svg_response(self._timelines.pod_group_svg(report), row.path)

    async def _group_events(self, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        namespace, row_id = request.match_info["namespace"], request.match_info["id"]
        return await self._events(request, login, RowKind.GROUP, namespace, row_id)

    def _has_format(self, row: StatusRow, way: str) -> bool:
        report = self._context.view.report(row.id)
        return row.way == way or (report is not None and way in report.formats)

    # --- Both --------------------------------------------------------------------------------------------------------

    def detail_of(self, row_id: str) -> StatusDetail:
        """A row of the view with its explanation."""
        view, fresh = self._context.view, self._context.source.fresh()
        explanation = view.explanation(row_id)
        assert explanation is not None, row_id  # noqa: S101 - every row has one
        explanation = replace(explanation, controller=fresh.controller)
        return StatusDetail(row=view.rows[row_id], explanation=explanation, report=view.report(row_id))

    async def _visibility(self, login: AuthenticatedViewer, kind: RowKind, namespace: str) -> Visibility:
        """In this namespace; with the right that timelines need."""
        rows = [row for row in self._context.view.rows_of(kind) if row.namespace == namespace]
        rights = dict.fromkeys((REQUIRED_RIGHT[kind], PODS, *(right for row in rows for right in row.needs)))
        return await resolve_visibility(self._context.reviewer, login.viewer, rights, {namespace}, namespace)

    async def _events(
        self, request: web.Request, login: AuthenticatedViewer, kind: RowKind, namespace: str, row_id: str
    ) -> web.StreamResponse:
        feed = DetailFeed(self._context.view, row_id, self._context.source.fresh, self.detail_of)
        check = partial(self._context.recheck_visibility, login, kind, namespace)
        return await self._context.stream_events(request, login, feed, check)


def _row_id(key: GangKey) -> str:
    return f"gang-{key.namespace}.{key.name}"


async def _svg_response(rendering: Awaitable[bytes], back: str) -> web.Response:
    try:
        svg = await rendering
    except KubeError as error:
        return problem_response(503, "The pods cannot be read", f"{error}", again=back)
    headers = {"Content-Type": "image/svg+xml", "Content-Security-Policy": PICTURE_POLICY}
    return web.Response(body=svg, headers=headers)
