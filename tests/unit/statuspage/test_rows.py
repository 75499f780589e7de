"""The rows of a list: filtered, ordered and cut into pages by the query in the address."""

from typing import Any

import msgspec

from controllers.statuspage.query import DAY, PAGE_SIZE, ListPage, ListQuery, parse_query, select_page
from controllers.statuspage.rows import GANGS, HeldDevices, RowKind, Severity, StatusRow, held_devices
from jobset_gate.barrier.model import BarrierStage
from jobset_gate.explain.model import Explanation
from tests.fakes import gangs


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
        needs=(GANGS["jobset"],),
        explanation=Explanation(kind="JobSet", namespace="team", name=name, state="Waiting"),
    )
    return msgspec.structs.replace(made, **changes)


BAD = row("broken", state="TimedOut", tone=Severity.BAD, namespace="other")
HELD = (HeldDevices(resource="nvidia.com/gpu", count=4, since_sum=4 * 3600.0, price=2.5),)
LATE = row("late", until=50.0, created=5.0, since=6.0)
SOON = row("soon", until=20.0, created=9.0, started=0, expected=9, since=9.0, held=HELD)
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
        ({"sort": "-lacking"}, ["done", "late", "broken", "soon"]),
        ({"sort": "waiting"}, ["late", "soon", "broken", "done"]),
        ({"sort": "held"}, ["soon", "broken", "done", "late"]),
        ({"sort": "nonsense"}, ["broken", "soon", "late", "done"]),
        ({"state": "Waiting"}, ["soon", "late"]),
        ({"namespace": "other"}, ["broken"]),
        ({"q": "TEAM/l"}, ["late"]),
        ({"q": "nobody"}, []),
    ):
        assert [it.name for it in page(*ALL, **query).rows] == names, query
    assert [it.name for it in page(row(), row("group", kind=RowKind.GROUP)).rows] == ["train"]


def test_a_link_keeps_the_query_goes_back_to_the_first_page_and_reverses_the_order_of_a_column_twice() -> None:
    query = ListQuery(RowKind.GANG, namespace="a b&c", text="x", page=3)
    assert query.link(state="TimedOut") == "/?namespace=a+b%26c&state=TimedOut&q=x"
    assert query.link(page=4) == "/?namespace=a+b%26c&q=x&page=4"
    assert query.events() == "/events?namespace=a+b%26c&q=x&page=3"
    assert ListQuery(RowKind.GROUP).link() == "/groups"
    assert parse_query(RowKind.GANG, {"q": "x"}).by("name") == "/?q=x&sort=name"
    assert parse_query(RowKind.GANG, {"q": "x", "sort": "name"}).by("name") == "/?q=x&sort=-name"
    assert parse_query(RowKind.GANG, {"sort": "-name"}).order == "by namespace and name, reversed"


def test_the_overview_is_of_the_namespace_and_the_name_in_any_state() -> None:
    late = row("late-too", state="TimedOut", tone=Severity.BAD, ended=3 * DAY + 60.0)
    lost = row("lost", state="IndexFailed", tone=Severity.BAD, ended=4 * DAY - 60.0)
    seen = page(*ALL, late, lost, namespace="team", state="Released").overview
    assert (seen.waiting, seen.lacking, seen.longest) == (2, 3 + 9, LATE)
    moments = (4 * DAY - 1.0, 4 * DAY + 1.0)
    assert [seen.ended_today(now) for now in moments] == [2, 0]
    assert [seen.ended_today(moments[0], state) for state in ("TimedOut", "IndexFailed", "Failed")] == [1, 1, 0]
    assert page(*ALL, namespace="other").overview.longest is None
    listed = page(*ALL, state="Released")
    assert (listed.all, listed.found, listed.namespaces) == (4, 1, ("other", "team"))
    assert listed.states == (("TimedOut", 1), ("Waiting", 2), ("Released", 1))
    assert listed.given_up == page(*ALL).given_up == (("TimedOut", 1),)


def test_device_hours_and_their_cost_are_summed_by_kind() -> None:
    other = HeldDevices(resource="google.com/tpu", count=2, since_sum=2 * 7200.0)
    seen = page(SOON, row("more", held=(*HELD, other))).overview
    assert [(it.resource, it.count, it.hours(7200.0), it.cost(7200.0)) for it in seen.held] == [
        ("nvidia.com/gpu", 8, 8.0, 20.0),
        ("google.com/tpu", 2, 0.0, None),
    ]
    assert (seen.devices, seen.hours(10_800.0), seen.cost(10_800.0), seen.cost_per_hour) == (10, 18.0, 40.0, 20.0)
    assert page(row("none")).overview.cost_per_hour is None


def test_devices_are_held_by_pods_that_have_started_and_are_not_released() -> None:
    jobset = gangs.jobset(gangs.replicated_job(devices=(("nvidia.com/gpu", 8),)), gangs.replicated_job("driver"))
    seen = gangs.gang(
        gangs.pod(0),
        gangs.pod(1, stage=BarrierStage.PASSED),
        gangs.waiting_pod(2),
        gangs.pod(3, phase="Failed"),
        gangs.pod(0, "driver"),
        gangs.waiting_pod(4, uid="told", pending=None),
        workload=jobset,
        announced={"told": gangs.T0 + 8},
    )
    (held,) = held_devices(seen, {"nvidia.com/gpu": 2.0})
    assert (held.count, held.since_sum, held.price) == (16, 8 * gangs.T0 + 8 * (gangs.T0 + 8), 2.0)
    assert held.hours(gangs.T0 + 8) == 64 / 3600


def test_many_rows_are_cut_into_pages() -> None:
    rows = [row(f"train-{number:04}") for number in range(2 * PAGE_SIZE + 7)]
    for number, is_page in (("1", 1), ("2", 2), ("99", 3), ("x", 1), ("-1", 1)):
        seen = page(*rows, page=number)
        assert (seen.query.page, seen.pages) == (is_page, 3)
        assert seen.rows[0].name == f"train-{(is_page - 1) * PAGE_SIZE:04}"
