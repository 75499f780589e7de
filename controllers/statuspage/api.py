"""The JSON API: the list of gangs and one gang, by the rules of the pages. The middleware makes its errors JSON."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from aiohttp import web
from msgspec.structs import replace

from controllers.statuspage.app import PageContext
from controllers.statuspage.auth import AuthenticatedViewer
from controllers.statuspage.html import json_response
from controllers.statuspage.query import ListPage, parse_query
from controllers.statuspage.rows import HeldDevices, RowKind, StatusRow
from jobset_gate.barrier.model import GangKey
from jobset_gate.explain.model import GangState
from jobset_gate.explain.text import explanation_json, time_or_none
from jobset_gate.objects.unstructured import Json
from jobset_gate.sources.table import JOBSET, SOURCES

MAX_REASONS: Final = 20
"""Reasons of a gang: a tenant may cause as many as a gang has pods."""


def api_routes(context: PageContext) -> list[web.RouteDef]:
    """Gangs as JSON."""
    gangs, gang = partial(_gangs, context), partial(_gang, context)
    return [context.get("/api/v1/gangs", gangs), context.get("/api/v1/gangs/{namespace}/{name}", gang)]


async def _gangs(context: PageContext, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
    page, visibility = await context.list_page(login, parse_query(RowKind.GANG, request.query))
    now = context.source.clock()
    return json_response(
        {
            "kind": "GangStatusList",
            "at": time_or_none(now),
            "complete": not visibility.restricted,
            "found": page.found,
            "page": page.query.page,
            "pages": page.pages,
            "overview": _overview(page, now),
            "items": [_gang_json(context, row, now) for row in page.rows],
        }
    )


async def _gang(context: PageContext, request: web.Request, login: AuthenticatedViewer) -> web.StreamResponse:
    source = SOURCES.get(request.query.get("source", ""), JOBSET)
    row, _, _ = await context.gang(login, GangKey(**request.match_info, source=source.name))
    return json_response(_gang_json(context, row, context.source.clock()))


def _gang_json(context: PageContext, row: StatusRow, now: float) -> Json:
    leader, missing = context.source.fresh().controller, row.explanation.missing[:MAX_REASONS]
    return {
        **explanation_json(replace(row.explanation, now=now, controller=leader, missing=missing)),
        "kind": "GangStatus",
        "path": row.path,
        "created": time_or_none(row.created or None),
        "waitsSince": time_or_none(row.since),
        "timedOutAt": time_or_none(row.ended if row.state == GangState.TIMED_OUT else None),
        "devices": _devices(row.held, now),
    }


def _overview(page: ListPage, now: float) -> Json:
    overview = page.overview
    return {
        "waiting": overview.waiting,
        "missingPods": overview.lacking,
        "longestWaitSince": None if overview.longest is None else time_or_none(overview.longest.since),
        "timedOutToday": overview.ended_today(now, GangState.TIMED_OUT),
        "indexFailedToday": overview.ended_today(now, GangState.INDEX_FAILED),
        "states": dict(page.states),
        "devices": _devices(overview.held, now),
    }


def _devices(held: Iterable[HeldDevices], now: float) -> list[Json]:
    return [
        {
            "resource": it.resource,
            "held": it.count,
            "deviceHours": round(it.hours(now), 3),
            "cost": _rounded(it.cost(now)),
            "costPerHour": _rounded(it.cost_per_hour),
        }
        for it in held
    ]


def _rounded(cost: float | None) -> float | None:
    return None if cost is None else round(cost, 4)
