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
from controllers.statuspage.pods import PodsSection, parse_window
from controllers.statuspage.rows import FOLDERS, PODS, RowKind, StatusRow, row_id
from controllers.statuspage.sse import DetailFeed
from controllers.statuspage.timelines import GangTimeline, TimelineRenderer
from jobset_gate.barrier.model import GangKey
from jobset_gate.kube.errors import KubeError
from jobset_gate.podgroups.status import GroupStatus

PODS_SECONDS: Final = 3.0
"""For which a page waits for its pods."""


class DetailHandlers:
    """Gangs and pod groups one by one."""

    def __init__(self, context: PageContext, timelines: TimelineRenderer) -> None:
        self._context, self._timelines = context, timelines

    def routes(self) -> list[web.RouteDef]:
        get, handlers = self._context.get, {"": self._gang, "/events": self._gang_events}
        handlers["/timeline.svg"] = self._gang_timeline
        return [
            *(
                get(f"/{folder}/{{namespace}}/{{name}}{tail}", partial(handler, source))
                for source, folder in FOLDERS.items()
                for tail, handler in handlers.items()
            ),
            get("/groups/{namespace}/{name}", self._group),
            get("/group-events/{namespace}/{id}", self._group_events),
            get("/group-timeline/{namespace}/{id}", self._group_timeline),
        ]

    # --- Gangs -------------------------------------------------------------------------------------------------------

    async def _gang(self, source: str, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        key = GangKey(**request.match_info, source=source)
        row, seen, visibility = await self._context.gang(login, key)
        events, picture = f"{row.path}/events", f"{row.path}/timeline.svg"
        if visibility.has_right(PODS):
            section = await self._section(request, self._timelines.of_gang(seen), row.path, picture)
        else:
            missing = f"Pods and timeline need the right to list pods in namespace {key.namespace}."
            section = PodsSection(problem=missing)
        return self._page(login, row, events, section)

    async def _gang_events(self, source: str, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        key = GangKey(**request.match_info, source=source)
        return await self._events(request, login, RowKind.GANG, key.namespace, row_id(key))

    async def _gang_timeline(self, source: str, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        row, seen, _ = await self._context.gang(login, GangKey(**request.match_info, source=source), PODS)
        return await self._svg(request, self._timelines.of_gang(seen), row.path)

    # --- Pod groups --------------------------------------------------------------------------------------------------

    async def _group(self, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        shown = await self._shown_groups(login, namespace, name, request.query.get("way", ""))
        if len(shown) > 1:
            links = [(row.path, f"{row.name} ({row.way})") for row, _ in shown]
            line = "They have different formats; each has an address of its own:"
            return problem_response(300, f"Several groups are called {namespace}/{name}", line, links=links)
        ((row, report),) = shown
        events, picture = f"/group-events/{namespace}/{row.id}", f"/group-timeline/{namespace}/{row.id}"
        section = await self._section(request, self._timelines.of_pod_group(report), row.path, picture)
        return self._page(login, row, events, section)

    async def _shown_groups(
        self, login: AuthenticatedViewer, namespace: str, name: str, way: str
    ) -> list[tuple[StatusRow, GroupStatus]]:
        """Those of that name and format that the viewer may see. Raises PageRefused if there is none."""
        context, kind = self._context, RowKind.GROUP
        visibility = await context.visibility(login, kind, namespace)
        if not visibility.has_right(kind.required):
            context.forbid(login, kind, [kind.required], namespace)
        named = (row for row in context.view.rows_of(kind) if (row.namespace, row.name) == (namespace, name))
        reported = [(row, row.report) for row in named if row.report is not None]
        found = [it for it in reported if not way or way in (it[0].way, *it[1].formats)]
        if not found:
            context.report_missing(kind, namespace, name)
        shown = [it for it in found if visibility.shows_row(it[0])]
        if not shown:
            missing = [right for right in found[0][0].needs if not visibility.has_right(right)]
            context.forbid(login, kind, missing, namespace)
        return shown

    async def _group_events(self, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        namespace, id_ = request.match_info["namespace"], request.match_info["id"]
        return await self._events(request, login, RowKind.GROUP, namespace, id_)

    async def _group_timeline(self, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
        """The namespace of the group counts, not the one in the address."""
        visibility = await self._context.visibility(login, RowKind.GROUP, request.match_info["namespace"])
        row = self._context.view.rows.get(request.match_info["id"])
        if row is None or row.report is None or not visibility.shows_row(row):
            line = "Or you may not see it."
            return problem_response(404, "There is no such pod group", line, again=RowKind.GROUP.path)
        return await self._svg(request, self._timelines.of_pod_group(row.report), row.path)

    # --- Both --------------------------------------------------------------------------------------------------------

    def _page(self, login: AuthenticatedViewer, row: StatusRow, events: str, section: PodsSection) -> web.Response:
        frame = self._context.page_frame(login, row.kind, row.path, events)
        return html_response(html.detail_page(frame, row, section))

    async def _events(
        self, request: web.Request, login: AuthenticatedViewer, kind: RowKind, namespace: str, id_: str
    ) -> web.StreamResponse:
        feed = DetailFeed(self._context.view, id_, self._context.source.fresh)
        return await self._context.stream_events(request, login, feed.next_update, kind, namespace)

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
