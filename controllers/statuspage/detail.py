"""The permalinks: one gang or one pod group, its pods, events and timeline."""

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Final

from aiohttp import web

from controllers.statuspage import html
from controllers.statuspage.app import PageContext
from controllers.statuspage.auth import AuthenticatedViewer
from controllers.statuspage.html import html_response, problem_response
from controllers.statuspage.middleware import PICTURE_POLICY
from controllers.statuspage.rows import FOLDERS, GANGS, PODS, RowKind, StatusRow, gang_path, row_id
from controllers.statuspage.sse import DetailFeed
from controllers.statuspage.timelines import GangTimeline, TimelineRenderer
from controllers.statuspage.zoom import PodsSection, parse_window
from jobset_gate.barrier.model import GangKey
from jobset_gate.kube.errors import KubeError

PODS_SECONDS: Final = 3.0
"""For which a page waits for its pods."""


class DetailHandlers:
    """Gangs and pod groups one by one."""

    def __init__(self, context: PageContext, timelines: TimelineRenderer) -> None:
        self._context, self._timelines = context, timelines

    def routes(self) -> list[web.RouteDef]:
        authenticated = self._context.authenticated
        return [
            *(it for source in FOLDERS for it in self._gang_routes(source)),
            web.get("/groups/{namespace}/{name}", authenticated(self._group)),
            web.get("/group-events/{namespace}/{id}", authenticated(self._group_events)),
            web.get("/group-timeline/{namespace}/{id}", authenticated(self._group_timeline)),
        ]

    def _gang_routes(self, source: str) -> list[web.RouteDef]:
        path = f"/{FOLDERS[source]}/{{namespace}}/{{name}}"
        handlers = {"": self._gang, "/events": self._gang_events, "/timeline.svg": self._gang_timeline}
        authenticated = self._context.authenticated
        return [web.get(path + tail, authenticated(partial(it, source))) for tail, it in handlers.items()]

    # --- Gangs -------------------------------------------------------------------------------------------------------

    async def _gang(self, source: str, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        key = GangKey(**request.match_info, source=source)
        found = await self._context.gang(login, key)
        if isinstance(found, web.StreamResponse):
            return found
        row, visibility = found
        seen = self._context.source.index.peek(key)
        frame = self._context.page_frame(login, RowKind.GANG, row.path, f"{row.path}/events")
        if not visibility.has_right(PODS) or seen is None:
            missing = f"Pods and timeline need the right to list pods in namespace {key.namespace}."
            return html_response(html.detail_page(frame, row, PodsSection(problem=missing)))
        making = self._timelines.of_gang(key, seen)
        section = await self._section(request, making, row.path, f"{row.path}/timeline.svg")
        return html_response(html.detail_page(frame, row, section))

    async def _gang_events(self, source: str, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        key = GangKey(**request.match_info, source=source)
        return await self._events(request, login, RowKind.GANG, key.namespace, row_id(key))

    async def _gang_timeline(self, source: str, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        kind, key = RowKind.GANG, GangKey(**request.match_info, source=source)
        needed = (GANGS[source], PODS)
        visibility = await self._context.visibility(login, kind, key.namespace, *needed)
        missing = [right for right in needed if not visibility.has_right(right)]
        if missing:
            return self._context.forbidden(login, kind, missing, key.namespace)
        gang = self._context.source.index.peek(key)
        if gang is None:
            return self._context.not_found(kind, key.namespace, key.name, needed[0])
        return await self._svg(request, self._timelines.of_gang(key, gang), gang_path(key))

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
            return self._context.not_found(kind, namespace, name, kind.required)
        if len(shown) > 1:
            links = [(row.path, f"{row.name} ({row.way})") for row in shown]
            line = "They have different formats; each has an address of its own:"
            return problem_response(300, f"Several groups are called {namespace}/{name}", line, links=links)
        row = shown[0]
        frame = self._context.page_frame(login, kind, row.path, f"/group-events/{namespace}/{row.id}")
        if row.report is None:
            return self._context.not_found(kind, namespace, name, kind.required)
        making = self._timelines.of_pod_group(row.report)
        section = await self._section(request, making, row.path, f"/group-timeline/{namespace}/{row.id}")
        return html_response(html.detail_page(frame, row, section))

    async def _group_events(self, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        return await self._events(
            request, login, RowKind.GROUP, request.match_info["namespace"], request.match_info["id"]
        )

    async def _group_timeline(self, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        """The namespace of the group counts, not the one in the address."""
        visibility = await self._context.visibility(login, RowKind.GROUP, request.match_info["namespace"])
        row = self._context.view.rows.get(request.match_info["id"])
        if row is None or row.report is None or not visibility.shows_row(row):
            line = "Or you may not see it."
            return problem_response(404, "There is no such pod group", line, again=RowKind.GROUP.path)
        return await self._svg(request, self._timelines.of_pod_group(row.report), row.path)

    # --- Both --------------------------------------------------------------------------------------------------------

    async def _events(
        self, request: web.Request, login: AuthenticatedViewer, kind: RowKind, namespace: str, row_id: str
    ) -> web.StreamResponse:
        feed = DetailFeed(self._context.view, row_id, self._context.source.fresh)
        return await self._context.stream_events(request, login, feed, kind, namespace)

    async def _section(self, request: web.Request, making: Awaitable[GangTimeline], path: str, svg: str) -> PodsSection:
        """Pods and timeline; what the page says without them does not wait for them."""
        try:
            async with asyncio.timeout(PODS_SECONDS):
                found = await making
        except TimeoutError:
            return PodsSection(problem="The pods are still being read. Refresh in a moment.")
        except KubeError as error:
            return PodsSection(problem=f"The pods cannot be read: {error}.")
        return PodsSection(found.pods, found.drawing, svg, parse_window(request.query), path)

    async def _svg(self, request: web.Request, making: Awaitable[GangTimeline], back: str) -> web.Response:
        try:
            drawn = await self._timelines.svg(await making, parse_window(request.query))
        except KubeError as error:
            return problem_response(503, "The pods cannot be read", f"{error}", again=back)
        headers = {"Content-Type": "image/svg+xml", "Content-Security-Policy": PICTURE_POLICY}
        return web.Response(body=drawn, headers=headers)


def _has_format(row: StatusRow, way: str) -> bool:
    return not way or row.way == way or (row.report is not None and way in row.report.formats)
