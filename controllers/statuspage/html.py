"""Lines and explanations as HTML. Everything that comes from a cluster is escaped: names and messages are tenants'."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import jinja2

from controllers.statuspage.query import ORDERS, ListPage, ListQuery
from controllers.statuspage.rows import RowKind, StatusRow
from controllers.statuspage.source import Freshness, freshness_sentences
from jobset_gate import names
from jobset_gate.explain import text as said
from jobset_gate.explain.model import Explanation
from jobset_gate.podgroups.status import GroupStatus

_FOLDER: Final = Path(__file__).parent
STATIC: Final = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
NAMES_OFFERED: Final = 200
_NOUNS: Final = {RowKind.GANG: ("Gangs", "gangs", "Started"), RowKind.GROUP: ("Pod groups", "pod groups", "Bound")}
_PLACES: Final = {RowKind.GANG: "gangs", RowKind.GROUP: "groups"}


@dataclass(frozen=True, slots=True)
class PageFrame:
    """What stands around every page."""

    viewer: str
    session: bool
    """He has signed in here, so he can sign out."""
    fresh: Freshness
    now: float
    place: str
    """gangs or groups."""
    here: str
    """The address of this page."""
    events: str = ""
    """The address of its live changes."""


@dataclass(frozen=True, slots=True)
class StatusDetail:
    """One gang or group."""

    row: StatusRow
    told: Explanation
    report: GroupStatus | None = None
    timeline: str = ""
    """The address of its picture."""
    no_timeline: str = ""
    """Why there is none."""


@lru_cache(maxsize=1)
def _templates() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        auto_reload=False,
    )
    made.globals.update(
        left=_left,
        span=said.format_duration,
        date=said.format_time,
        reason=said.missing_reason,
        named=said.slot_list,
        frame=None,
        now=0.0,
        names=names,
    )
    return made


@lru_cache(maxsize=len(STATIC))
def static_file(name: str) -> bytes:
    """One of the files that every page has."""
    return (_FOLDER / "static" / name).read_bytes()


def list_page(frame: PageFrame, view: ListPage, *, narrowed: str, limited: bool, groups_kept: bool) -> str:
    """The list of gangs, or of groups."""
    heading, _, counted = _NOUNS[view.query.kind]
    choices = dict.fromkeys((*view.namespaces, *((view.query.namespace,) if view.query.namespace else ())))
    return _page(
        "list.html",
        frame,
        title=heading,
        heading=heading,
        counted=counted,
        narrowed=narrowed,
        limited=limited,
        choices=list(choices)[: NAMES_OFFERED + 1],
        orders=[(word, name) for word, (name, _) in ORDERS.items()],
        order=ORDERS[view.query.sort][0],
        **_of_view(view, groups_kept=groups_kept),
    )


def list_fragments(view: ListPage, *, groups_kept: bool) -> dict[str, str]:
    """What changes of a list besides its lines, by the id of the element."""
    known = _of_view(view, groups_kept=groups_kept)
    return {name: _piece(name, **known) for name in ("banner", "summary", "empty", "pager")}


def row_fragment(row: StatusRow, now: float) -> str:
    """One line of a list."""
    return _piece("row", row=row, now=now)


def freshness_fragment(frame_fresh: Freshness, now: float) -> str:
    """How true the page is."""
    return _piece("fresh", frame={"fresh": frame_fresh}, sentences=freshness_sentences(frame_fresh, now))


def detail_fragment(it: StatusDetail) -> str:
    """What changes of a gang's page."""
    return _piece("about", **_of_about(it))


def detail_page(frame: PageFrame, it: StatusDetail) -> str:
    """The page of one gang or group."""
    title = f"{it.told.namespace}/{it.told.name}: {it.told.state}"
    back = "/groups" if it.row.kind is RowKind.GROUP else "/"
    return _page(
        "gang.html", frame, title=title, back=back, timeline=it.timeline, no_timeline=it.no_timeline, **_of_about(it)
    )


def login_page(problem: str, after: str) -> str:
    """The form for a token."""
    return _whole("login.html", title="Sign in", problem=problem, next=after)


def problem_page(
    heading: str,
    told: Sequence[str],
    *,
    commands: Sequence[str] = (),
    session: bool = False,
    ask_namespace: str = "",
    again: str = "",
    links: Collection[tuple[str, str]] = (),
) -> str:
    """What is wrong and what to do about it."""
    return _whole(
        "problem.html",
        title=heading,
        heading=heading,
        told=told,
        commands=commands,
        session=session,
        ask_namespace=ask_namespace,
        again=again,
        links=links,
    )


def _of_view(view: ListPage, *, groups_kept: bool) -> dict[str, Any]:
    query: ListQuery = view.query
    return {
        "view": view,
        "noun": _NOUNS[query.kind][1],
        "place": _PLACES[query.kind],
        "groups_kept": groups_kept,
        "where": f" in namespace {query.namespace}" if query.namespace else "",
    }


def _of_about(it: StatusDetail) -> dict[str, Any]:
    told = it.told
    return {
        "it": told,
        "row": it.row,
        "now": told.now,
        "clock": said.time_left(told),
        "counted": "pods started" if it.report is None else "pods bound",
        "facts": () if it.report is None else _facts(it.report, told.now),
    }


def _facts(report: GroupStatus, now: float) -> tuple[tuple[str, str], ...]:
    counts = report.counts
    return (
        ("Phase", str(report.phase)),
        ("Way", ", ".join(report.formats) or str(report.key.design)),
        ("Minimum", str(counts.minimum or "not known")),
        ("Pods", str(counts.present)),
        ("Bound", str(counts.bound)),
        ("Running", str(counts.running)),
        ("Succeeded", str(counts.succeeded)),
        ("Failed", str(counts.failed)),
        ("Age", said.format_duration(now - report.created) if report.created else "not known"),
    )


def _page(name: str, frame: PageFrame, **known: Any) -> str:
    moment = datetime.fromtimestamp(frame.now, UTC).strftime("%H:%M:%S")
    told = freshness_sentences(frame.fresh, frame.now)
    return _render(name, {"frame": frame, "now": frame.now, "moment": moment, "sentences": told, **known})


def _whole(name: str, **known: Any) -> str:
    return _render(name, known)


def _piece(name: str, **known: Any) -> str:
    return _render(f"{name}.html", known)


def _render(name: str, known: Mapping[str, Any]) -> str:
    return _templates().get_template(name).render(known)


def _left(until: float, now: float) -> str:
    return f"{said.format_duration(until - now)} left" if until > now else "time is up"
