"""Pages and fragments of HTML. Everything that comes from a cluster is escaped: tenants choose names and messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import jinja2
from aiohttp import web

from controllers.statuspage.rows import ORDERS, ListPage, ListRight, RowKind, StatusRow
from controllers.statuspage.source import Freshness, freshness_sentences
from jobset_gate import names
from jobset_gate.explain import text as explain_text
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
    """What every page has around its content."""

    viewer: str
    session: bool
    """The viewer has signed in by the form, so there is a button to sign out."""
    fresh: Freshness
    now: float
    place: str
    """gangs or groups."""
    here: str
    """The address of this page."""
    events: str = ""
    """The address of its event stream."""


@dataclass(frozen=True, slots=True)
class StatusDetail:
    """One gang or group."""

    row: StatusRow
    explanation: Explanation
    report: GroupStatus | None = None
    timeline: str = ""
    """The address of its timeline."""
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
        span=explain_text.format_duration,
        date=explain_text.format_time,
        reason=explain_text.missing_reason,
        named=explain_text.slot_list,
        frame=None,
        now=0.0,
        names=names,
    )
    return made


@lru_cache(maxsize=len(STATIC))
def static_file(name: str) -> bytes:
    """A file of STATIC."""
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
    """The changing parts of a list besides its rows, by the id of their element."""
    known = _of_view(view, groups_kept=groups_kept)
    return {name: _piece(name, **known) for name in ("banner", "summary", "empty", "pager")}


def row_fragment(row: StatusRow, now: float) -> str:
    """One row of a list."""
    return _piece("row", row=row, now=now)


def freshness_fragment(fresh: Freshness, now: float) -> str:
    """How fresh the page is."""
    return _piece("fresh", frame={"fresh": fresh}, sentences=freshness_sentences(fresh, now))


def detail_fragment(it: StatusDetail) -> str:
    """The changing part of the page of a gang or pod group."""
    return _piece("about", **_of_about(it))


def detail_page(frame: PageFrame, it: StatusDetail) -> str:
    """The page of one gang or group."""
    title = f"{it.explanation.namespace}/{it.explanation.name}: {it.explanation.state}"
    back = "/groups" if it.row.kind is RowKind.GROUP else "/"
    return _page(
        "gang.html", frame, title=title, back=back, timeline=it.timeline, no_timeline=it.no_timeline, **_of_about(it)
    )


def login_page(problem: str, after: str) -> str:
    """The form for a token."""
    return _whole("login.html", title="Sign in", problem=problem, next=after)


def problem_page(heading: str, lines: Sequence[str], *, again: str = "", **more: Any) -> str:
    """What is wrong and what to do about it. `more`: commands, links, session, ask_namespace of problem.html."""
    known = {"commands": (), "links": (), "session": False, "ask_namespace": "", **more}
    return _whole("problem.html", title=heading, heading=heading, lines=lines, again=again, **known)


def html_response(text: str, status: int = 200, **headers: str) -> web.Response:
    """A page."""
    return web.Response(text=text, status=status, content_type="text/html", headers=headers)


def problem_response(status: int, heading: str, *lines: str, again: str = "", **more: Any) -> web.Response:
    """A problem page with this status."""
    return html_response(problem_page(heading, lines, again=again, **more), status)


def forbidden_page(
    viewer: str, session: str, rights: Sequence[ListRight], namespace: str, list_path: str, *, limited: bool = False
) -> web.Response:
    """403: which right is missing, and how to get it."""
    kinds = " and ".join(it.name for it in rights)
    where = f"in namespace {namespace}" if namespace else "in all namespaces"
    lines = [f"You are signed in as {viewer}, who may not list {kinds} {where}."]
    if limited:
        lines.append("There are too many namespaces to find out in which of them you may: name one.")
    elif not namespace:
        lines.append("Nor may you in any namespace with something to show. If you may in another, name it.")
    lines.append("A cluster administrator can grant that right by a RoleBinding; this shows whether you have it:")
    flag = f"-n {namespace}" if namespace else "-A"
    return problem_response(
        403,
        f"You may not list {kinds} {where}",
        *lines,
        again=list_path,
        commands=[f"kubectl auth can-i list {it.name} {flag}" for it in rights],
        session=bool(session),
        ask_namespace=list_path,
    )


def not_found_page(what: str, list_path: str) -> web.Response:
    """404."""
    line = "It was deleted, or was never there, or does not ask for a gate. Names are current ones."
    return problem_response(404, f"There is no {what}", line, again=list_path)


def not_synced_page(why: str, path: str) -> web.Response:
    """503: an empty page would be wrong."""
    lines = (f"This replica has not read the cluster yet: {why}.", "It keeps trying.")
    response = problem_response(503, "Nothing can be shown yet", *lines, again=path)
    response.headers["Retry-After"] = "2"
    return response


def too_many_streams_page(path: str) -> web.Response:
    """503 for a stream."""
    line = "Too many pages are open; this one is not updated by itself."
    response = problem_response(503, "Too many open pages", line, again=path)
    response.headers["Retry-After"] = "30"
    return response


def _of_view(view: ListPage, *, groups_kept: bool) -> dict[str, Any]:
    query = view.query
    return {
        "view": view,
        "noun": _NOUNS[query.kind][1],
        "place": _PLACES[query.kind],
        "groups_kept": groups_kept,
        "where": f" in namespace {query.namespace}" if query.namespace else "",
    }


def _of_about(it: StatusDetail) -> dict[str, Any]:
    explanation = it.explanation
    leader = explanation.controller
    return {
        "no_leader": leader.message if leader is not None and leader.leads is not True else "",
        "it": explanation,
        "row": it.row,
        "now": explanation.now,
        "clock": explain_text.time_left(explanation),
        "counted": "pods started" if it.report is None else "pods bound",
        "facts": () if it.report is None else _facts(it.report, explanation.now),
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
        ("Age", explain_text.format_duration(now - report.created) if report.created else "not known"),
    )


def _page(name: str, frame: PageFrame, **known: Any) -> str:
    moment = datetime.fromtimestamp(frame.now, UTC).strftime("%H:%M:%S")
    sentences = freshness_sentences(frame.fresh, frame.now)
    return _render(name, {"frame": frame, "now": frame.now, "moment": moment, "sentences": sentences, **known})


def _whole(name: str, **known: Any) -> str:
    return _render(name, known)


def _piece(name: str, **known: Any) -> str:
    return _render(f"{name}.html", known)


def _render(name: str, known: Mapping[str, Any]) -> str:
    return _templates().get_template(name).render(known)


def _left(until: float, now: float) -> str:
    return f"{explain_text.format_duration(until - now)} left" if until > now else "time is up"
