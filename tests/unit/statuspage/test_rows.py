"""The rows of a list: filtered, ordered and cut into pages by the query in the address."""

from typing import Any

import msgspec

from controllers.statuspage.rows import (
    JOBSETS,
    PAGE_SIZE,
    ListPage,
    ListQuery,
    RowKind,
    Severity,
    StatusRow,
    parse_query,
    select_page,
)
from jobset_gate.explain.model import Explanation


def row(name: str = "train", **changes: Any) -> StatusRow:
    made = StatusRow(
        id=f"gang-team.{name}",
        kind=RowKind.GANG,
        namespace="team",
        name=name,
        path=f"/gangs/team/{name}",
        state="Waiting",
        tone=Severity.WAIT,
        started=1,
        expected=4,
        message="",
        until=None,
        created=0.0,
        needs=(JOBSETS,),
        explanation=Explanation(kind="JobSet", namespace="team", name=name, state="Waiting"),
    )
    return msgspec.structs.replace(made, **changes)


BAD = row("broken", state="TimedOut", tone=Severity.BAD, namespace="other")
LATE = row("late", until=50.0, created=5.0)
SOON = row("soon", until=20.0, created=9.0, started=0, expected=9)
DONE = row("done", state="Released", tone=Severity.GOOD, started=4)
ALL = (DONE, LATE, SOON, BAD)


def page(*rows: StatusRow, **query: str) -> ListPage:
    return select_page(parse_query(RowKind.GANG, query), rows)


def test_rows_are_filtered_and_ordered() -> None:
    for query, names in (
        ({}, ["broken", "soon", "late", "done"]),
        ({"sort": "name"}, ["broken", "done", "late", "soon"]),
        ({"sort": "newest"}, ["soon", "late", "broken", "done"]),
        ({"sort": "lacking"}, ["soon", "broken", "late", "done"]),
        ({"sort": "nonsense"}, ["broken", "soon", "late", "done"]),
        ({"state": "Waiting"}, ["soon", "late"]),
        ({"namespace": "other"}, ["broken"]),
        ({"q": "TEAM/l"}, ["late"]),
        ({"q": "nobody"}, []),
    ):
        assert [it.name for it in page(*ALL, **query).rows] == names, query
    assert [it.name for it in page(row(), row("group", kind=RowKind.GROUP)).rows] == ["train"]


def test_counts_are_of_the_namespace_and_the_name_in_any_state() -> None:
    seen = page(*ALL, state="Released")
    assert (seen.all, seen.found) == (4, 1)
    assert seen.states == (("TimedOut", 1), ("Waiting", 2), ("Released", 1))
    assert seen.namespaces == ("other", "team")
    assert (seen.late, page(*ALL).late) == ((), (BAD,))


def test_many_rows_are_cut_into_pages() -> None:
    rows = [row(f"train-{number:04}") for number in range(2 * PAGE_SIZE + 7)]
    for number, first, is_page in (
        ("1", 0, 1),
        ("2", PAGE_SIZE, 2),
        ("99", 2 * PAGE_SIZE, 3),
        ("x", 0, 1),
        ("-1", 0, 1),
    ):
        seen = page(*rows, page=number)
        assert seen.rows[0].name == f"train-{first:04}"
        assert (seen.query.page, seen.pages) == (is_page, 3)


def test_a_link_keeps_the_query_and_goes_back_to_the_first_page() -> None:
    query = ListQuery(RowKind.GANG, namespace="a b&c", text="x", page=3)
    assert query.link(state="TimedOut") == "/?namespace=a+b%26c&state=TimedOut&q=x"
    assert query.link(page=4) == "/?namespace=a+b%26c&q=x&page=4"
    assert query.events() == "/events?namespace=a+b%26c&q=x&page=3"
    assert ListQuery(RowKind.GROUP).link() == "/groups"
