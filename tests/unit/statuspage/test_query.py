"""Which lines an address asks for: filtered, ordered and cut into pages."""

from typing import Any

import msgspec
import pytest

from controllers.statuspage.query import SIZE, ListQuery, parse, select_page
from controllers.statuspage.rows import JOBSETS, RowKind, Severity, StatusRow


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
        told="",
        until=None,
        created=0.0,
        needs=(JOBSETS,),
    )
    return msgspec.structs.replace(made, **changes)


def shown(*rows: StatusRow, **asked: str) -> list[str]:
    return [it.name for it in select_page(parse(RowKind.GANG, asked), rows, lambda _: False).rows]


BAD = row("broken", state="TimedOut", tone=Severity.BAD, namespace="other")
LATE = row("late", until=50.0, created=5.0)
SOON = row("soon", until=20.0, created=9.0, started=0, expected=9)
DONE = row("done", state="Released", tone=Severity.GOOD, started=4)
ALL = (DONE, LATE, SOON, BAD)


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({}, ["broken", "soon", "late", "done"]),
        ({"sort": "name"}, ["broken", "done", "late", "soon"]),
        ({"sort": "newest"}, ["soon", "late", "broken", "done"]),
        ({"sort": "lacking"}, ["soon", "broken", "late", "done"]),
        ({"sort": "nonsense"}, ["broken", "soon", "late", "done"]),
        ({"state": "Waiting"}, ["soon", "late"]),
        ({"namespace": "other"}, ["broken"]),
        ({"q": "TEAM/l"}, ["late"]),
        ({"q": "nobody"}, []),
    ],
)
def test_lines_are_filtered_and_ordered(asked: dict[str, str], names: list[str]) -> None:
    assert shown(*ALL, **asked) == names


def test_counts_are_those_of_the_namespace_and_the_name_whatever_state_is_asked_for() -> None:
    seen = select_page(parse(RowKind.GANG, {"state": "Released"}), ALL, lambda it: it is BAD)
    assert (seen.all, seen.found) == (4, 1)
    assert seen.states == (("TimedOut", 1), ("Waiting", 2), ("Released", 1))
    assert seen.namespaces == ("other", "team")


@pytest.mark.parametrize(
    ("page", "first", "is_page"), [("1", 0, 1), ("2", SIZE, 2), ("99", 2 * SIZE, 3), ("x", 0, 1), ("-1", 0, 1)]
)
def test_many_lines_are_cut_into_pages(page: str, first: int, is_page: int) -> None:
    rows = [row(f"train-{number:04}") for number in range(2 * SIZE + 7)]
    seen = select_page(parse(RowKind.GANG, {"page": page}), rows, lambda _: False)
    assert seen.rows[0].name == f"train-{first:04}"
    assert (seen.query.page, seen.pages) == (is_page, 3)


def test_lines_of_the_other_kind_are_not_shown() -> None:
    assert shown(row(), row("group", kind=RowKind.GROUP)) == ["train"]


def test_a_link_keeps_what_was_asked_for_and_goes_back_to_the_first_page() -> None:
    query = ListQuery(RowKind.GANG, namespace="a b&c", text="x", page=3)
    assert query.link(state="TimedOut") == "/?namespace=a+b%26c&state=TimedOut&q=x"
    assert query.link(page=4) == "/?namespace=a+b%26c&q=x&page=4"
    assert query.events() == "/events?namespace=a+b%26c&q=x&page=3"
    assert ListQuery(RowKind.GROUP).link() == "/groups"
