"""Pages and fragments of HTML. Everything that comes from a cluster is escaped: tenants choose names and messages."""

from pathlib import Path
from typing import Any, Final

import jinja2
import msgspec
from aiohttp import web
from msgspec.structs import replace

from controllers.statuspage.pods import PodsSection
from controllers.statuspage.query import ORDERS, ListPage
from controllers.statuspage.rows import StatusRow
from controllers.statuspage.source import Freshness
from jobset_gate import names
from jobset_gate.explain import text as explain_text
from jobset_gate.explain.model import GIVEN_UP_STATES, Explanation
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.sources.table import JOBSET
from jobset_gate.timeline.summary import money

FOLDER: Final = Path(__file__).parent
STATIC: Final = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
NAMES_OFFERED: Final = 200
_COLUMNS: Final = (
    ("Name", "name", True),
    ("State", "attention", True),
    ("", "lacking", False),
    ("Waiting", "waiting", False),
    ("Age", "newest", True),
    ("Why", "", True),
)
"""Of a list: heading, the order by it, and whether that is an ascending one."""
MAX_REASONS: Final = 50
"""Reasons of a gang's page: a tenant may cause as many as a gang has pods."""
PROBLEM: Final = web.ResponseKey("problem", str)
"""The key of a response under which its text is kept, for programs."""
Frame = dict[str, Any]
"""What every page has around its content, as its template names it."""


def render(template: str, **known: Any) -> str:
    """A page or a fragment of one, of the file of templates of that name."""
    return _TEMPLATES.get_template(f"{template}.html").render(known)


def list_page(frame: Frame, view: ListPage, *, narrowed: str, limited: bool) -> str:
    """The list of gangs, or of groups."""
    kind = view.query.kind
    choices = dict.fromkeys((*view.namespaces, *((view.query.namespace,) if view.query.namespace else ())))
    return render(
        "list",
        now=frame["now"],
        frame=frame,
        title=kind.noun.capitalize(),
        view=view,
        narrowed=narrowed,
        limited=limited,
        choices=list(choices)[: NAMES_OFFERED + 1],
        orders={**{word: name for word, (name, _) in ORDERS.items()}, view.query.sort: view.query.order},
        columns=[(name or kind.counted, word, ascending) for name, word, ascending in _COLUMNS],
    )


def list_fragments(view: ListPage, now: float) -> dict[str, str]:
    """The changing parts of a list other than its rows, by the id of their element."""
    return {name: render(name, now=now, view=view) for name in ("cards", "summary", "empty", "pager")}


def detail_fragment(row: StatusRow, fresh: Freshness, now: float) -> str:
    """The changing part of the page of a gang or pod group."""
    return render("about", now=now, **_of_about(row, fresh, now))


def detail_page(frame: Frame, row: StatusRow, section: PodsSection) -> str:
    """The page of one gang or group."""
    known = _of_about(row, frame["fresh"], frame["now"])
    return render("gang", now=frame["now"], frame=frame, title=detail_title(row), section=section, **known)


def detail_title(row: StatusRow) -> str:
    return f"{row.namespace}/{row.name}: {row.state}"


def html_response(text: str, status: int = 200, **headers: str) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html", headers=headers)


def json_response(document: dict[str, Any], status: int = 200, **headers: str) -> web.Response:
    """JSON in which no browser sees a tag, whatever tenants have written into it."""
    body = msgspec.json.encode(document)
    for each in (b"<", b">", b"&"):
        body = body.replace(each, b"\\u%04x" % each[0])
    return web.Response(body=body, status=status, content_type="application/json", headers=headers)


def problem_response(
    status: int, heading: str, *lines: str, again: str = "", retry_after: float = 0, **more: Any
) -> web.Response:
    """What is wrong and what to do about it. `more`: commands, links, session, ask_namespace of problem.html."""
    known = {"commands": (), "links": (), "session": False, "ask_namespace": "", **more}
    text = render("problem", title=heading, heading=heading, lines=lines, again=again, navigation=True, **known)
    response = html_response(text, status, **({"Retry-After": f"{max(1, round(retry_after))}"} if retry_after else {}))
    response[PROBLEM] = ": ".join((heading, " ".join(lines)))
    return response


class PageRefused(Exception):
    """Ends a request with this response."""

    def __init__(self, response: web.Response) -> None:
        super().__init__(response.reason)
        self.response = response


def _of_about(row: StatusRow, fresh: Freshness, now: float) -> dict[str, Any]:
    leader = fresh.controller
    explanation = replace(row.explanation, now=now, controller=leader)
    named_as = row.name if row.explanation.source in ("", JOBSET.name) else f"{row.explanation.source}/{row.name}"
    return {
        "no_leader": "" if leader.leads else leader.message,
        "it": explanation,
        "row": row,
        "named_as": named_as,
        "clock": explain_text.time_left(explanation),
        "counted": "pods started" if row.report is None else "pods bound",
        "facts": _owner_facts(explanation) if row.report is None else _facts(row.report),
        "shown": explanation.missing[:MAX_REASONS],
        "more_commands": [it for it in explanation.commands if it not in {one.command for one in explanation.missing}],
    }


def _owner_facts(it: Explanation) -> dict[str, object]:
    """Of a start group: its name alone does not say which it is. The name of a LeaderWorkerSet's group does."""
    if it.owner is None or it.owner.kind == it.kind:
        return {}
    return {"Owner": f"{it.owner.kind} {it.owner.name}", "Attempt": it.attempt}


def _facts(report: GroupStatus) -> dict[str, object]:
    counts = report.counts
    return {
        "Phase": report.phase,
        "Way": ", ".join(report.formats) or report.key.flavor,
        "Minimum": counts.minimum or "not known",
        "Pods": counts.present,
        "Bound": counts.bound,
        "Running": counts.running,
        "Succeeded": counts.succeeded,
        "Failed": counts.failed,
    }


def _left(until: float, now: float) -> str:
    return f"{explain_text.format_duration(until - now)} left" if until > now else "time is up"


_TEMPLATES: Final = jinja2.Environment(
    loader=jinja2.FileSystemLoader(FOLDER / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    auto_reload=False,
)
_TEMPLATES.globals.update(
    left=_left,
    money=money,
    navigation=False,
    moment=lambda at: explain_text.format_time(at)[11:19],
    span=explain_text.format_duration,
    date=explain_text.format_time,
    named=explain_text.slot_list,
    frame=None,
    now=0.0,
    names=names,
    given_up=GIVEN_UP_STATES,
)
