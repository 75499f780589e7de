"""The permalinks: one gang or one pod group, its events and its timeline."""

from collections.abc import Awaitable

from aiohttp import web

from controllers.statuspage import html
from controllers.statuspage.app import PageContext
from controllers.statuspage.auth import AuthenticatedViewer
from controllers.statuspage.html import html_response, problem_response
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
        visibility = await self._context.visibility(login, kind, key.namespace, PODS)
        if not visibility.has_right(kind.required):
            return self._context.forbidden(login, kind, [kind.required], key.namespace)
        row = self._context.view.rows.get(_row_id(key))
        if row is None:
            return _not_found(f"gang {key}", kind)
        frame = self._context.page_frame(login, kind, row.path, f"{row.path}/events")
        if visibility.has_right(PODS):
            return html_response(html.detail_page(frame, row, timeline=f"{row.path}/timeline.svg"))
        missing = f"The timeline needs the right to list pods in namespace {key.namespace}."
        return html_response(html.detail_page(frame, row, timeline="", no_timeline=missing))

    async def _gang_events(self, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        key = GangKey(**request.match_info)
        return await self._events(request, login, RowKind.GANG, key.namespace, _row_id(key))

    async def _gang_timeline(self, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        kind, key = RowKind.GANG, GangKey(**request.match_info)
        visibility = await self._context.visibility(login, kind, key.namespace, PODS)
        missing = [right for right in (kind.required, PODS) if not visibility.has_right(right)]
        if missing:
            return self._context.forbidden(login, kind, missing, key.namespace)
        gang = self._context.source.index.peek(key)
        if gang is None:
            return _not_found(f"gang {key}", kind)
        return await _svg_response(self._timelines.gang_svg(key, gang), f"/gangs/{key}")

    # --- Pod groups --------------------------------------------------------------------------------------------------

    async def _group(self, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        kind, namespace, name = RowKind.GROUP, request.match_info["namespace"], request.match_info["name"]
        visibility = await self._context.visibility(login, kind, namespace)
        if not visibility.has_right(kind.required):
            return self._context.forbidden(login, kind, [kind.required], namespace)
        named = [row for row in self._context.view.rows_of(kind) if (row.namespace, row.name) == (namespace, name)]
        found = [row for row in named if _has_format(row, request.query.get("way", ""))]
        shown = [row for row in found if visibility.shows_row(row)]
        if found and not shown:
            missing = [right for right in found[0].needs if not visibility.has_right(right)]
            return self._context.forbidden(login, kind, missing, namespace)
        if not shown:
            return _not_found(f"pod group {namespace}/{name}", kind)
        if len(shown) > 1:
            links = [(row.path, f"{row.name} ({row.way})") for row in shown]
            line = "They have different formats; each has an address of its own:"
            return problem_response(300, f"Several groups are called {namespace}/{name}", line, links=links)
        row = shown[0]
        frame = self._context.page_frame(login, kind, row.path, f"/group-events/{namespace}/{row.id}")
        return html_response(html.detail_page(frame, row, timeline=f"/group-timeline/{namespace}/{row.id}"))

    async def _group_events(self, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        return await self._events(
            request, login, RowKind.GROUP, request.match_info["namespace"], request.match_info["id"]
        )

    async def _group_timeline(self, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        """The namespace of the group counts, not the one in the address."""
        visibility = await self._context.visibility(login, RowKind.GROUP, request.match_info["namespace"])
        row = self._context.view.rows.get(request.match_info["id"])
        if row is None or row.report is None or not visibility.shows_row(row):
            return _not_found("such group, or you may not see it", RowKind.GROUP)
        return await _svg_response(self._timelines.pod_group_svg(row.report), row.path)

    # --- Both --------------------------------------------------------------------------------------------------------

    async def _events(
        self, request: web.Request, login: AuthenticatedViewer, kind: RowKind, namespace: str, row_id: str
    ) -> web.StreamResponse:
        feed = DetailFeed(self._context.view, row_id, self._context.source.fresh)
        return await self._context.stream_events(request, login, feed, kind, namespace)


def _row_id(key: GangKey) -> str:
    return f"gang-{key.namespace}.{key.name}"


def _has_format(row: StatusRow, way: str) -> bool:
    return not way or row.way == way or (row.report is not None and way in row.report.formats)


def _not_found(what: str, kind: RowKind) -> web.Response:
    line = "It was deleted, or was never there, or does not ask for a gate. Names are current ones."
    return problem_response(404, f"There is no {what}", line, again=kind.path)


async def _svg_response(rendering: Awaitable[bytes], back: str) -> web.Response:
    try:
        svg = await rendering
    except KubeError as error:
        return problem_response(503, "The pods cannot be read", f"{error}", again=back)
    headers = {"Content-Type": "image/svg+xml", "Content-Security-Policy": PICTURE_POLICY}
    return web.Response(body=svg, headers=headers)
