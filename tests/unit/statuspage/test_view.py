"""The board explains what has changed, and nothing twice; one odd gang hides no other."""

from collections.abc import Mapping
from typing import Any

import pytest

from controllers.barrier.cache import GangCache
from controllers.statuspage import html, rows
from controllers.statuspage import view as boards
from controllers.statuspage.query import parse_query, select_page
from controllers.statuspage.source import Freshness, PageSource
from controllers.statuspage.view import StatusView
from jobset_gate import names
from jobset_gate.barrier.model import GangKey, GangSnapshot, PodSeen, VerdictKind
from jobset_gate.explain.gang import explain_gang
from jobset_gate.runtime.store import ObjectChange
from tests.fakes import gangs
from tests.fakes.podgroups.objects import key, pod
from tests.fakes.podgroups.snapshots import group_snapshot
from tests.fakes.review_api import FakeReviewApi
from tests.fakes.served_page import FakePodGroups, ServedPage


class Made:
    """A board over an index, with a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = gangs.T0
        self.explained: list[str] = []
        self.index = GangCache(lambda _: None, lambda _, __: None, (), self._touched)
        self.groups = FakePodGroups()
        self._stage = ServedPage(FakeReviewApi(), self.index, None, self.groups)  # type: ignore[arg-type]  # no server
        source = PageSource(index=self.index, clock=lambda: self.now, fresh=Freshness, groups=self.groups)
        self.board = StatusView(source, lambda: self.now)
        self.patch = monkeypatch
        monkeypatch.setattr(boards, "explain_gang", self._explain)

    def put(self, name: str, *pods: PodSeen, gate: Mapping[str, Any] | None = None, **changes: Any) -> GangKey:
        """This gang is there now, with these pods, and a ConfigMap with this in it."""
        uid = f"u-{name}"
        made = None if gate is None else gangs.config_map(name=f"{name}-group-scheduling", workload_uid=uid, **gate)
        return self._stage.put(gangs.jobset(name=name, uid=uid, **changes), *pods, gate=made)

    @property
    def row(self) -> rows.StatusRow:
        """Of the gang `a`."""
        return self.board.rows["gang-default.a"]

    def _touched(self, key: GangKey) -> None:
        self.board.mark_dirty(key)

    def _explain(self, seen: GangSnapshot, now: float) -> Any:
        self.explained.append(seen.workload.name)
        if seen.workload.name == "odd":
            raise ValueError("odd")
        return explain_gang(seen, now)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    return Made(monkeypatch)


async def test_only_what_has_changed_is_explained_again(made: Made) -> None:
    made.put("a")
    made.put("b")
    await made.board.refresh()
    assert sorted(made.explained) == ["a", "b"]
    made.explained.clear()
    version = made.board.version
    await made.board.refresh()
    assert made.explained == []
    made.board.mark_dirty(GangKey("default", "a"))
    await made.board.refresh()
    assert (made.explained, made.board.version) == (["a"], version), "a change that nobody would see is none"
    made.explained.clear()
    made.put("b", suspended=True)
    await made.board.refresh()
    assert made.explained == ["b"]
    assert made.board.rows["gang-default.b"].state == "Suspended"


async def test_a_timeout_that_comes_while_nothing_else_happens_is_seen(made: Made) -> None:
    made.put("a", gangs.pod(0), gate={"waiting_since": gangs.clock(uid="u-a")})
    await made.board.refresh()
    assert made.row.until == gangs.T0 + 300
    made.now += 301
    await made.board.refresh()
    assert made.row.state == "Due"


async def test_since_when_a_gang_waits_and_when_it_was_ended_is_known_by_its_pods_and_its_config_map(
    made: Made,
) -> None:
    """Where the ConfigMap is gone, nobody knows when an index had failed; a clock of another attempt tells nothing."""
    timeout = gangs.verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, uid="u-a")
    failed = gangs.verdict(VerdictKind.TIMEOUT, names.REASON_INDEX_FAILED, uid="u-a")
    words = "ended: 1/2 pods started (uid u-a, attempt 0, epoch 0)"
    gone = gangs.condition(names.REASON_INDEX_FAILED, words, status="False")
    for changes, gate, state, since, ended in (
        ({}, None, "Waiting", gangs.T0 - 7, None),
        ({"suspended": True}, None, "Suspended", None, None),
        ({}, {"waiting_since": gangs.clock(uid="u-a"), "verdict": timeout}, "TimedOut", None, gangs.T0 + 300),
        ({}, {"waiting_since": gangs.clock(uid="u-a", attempt=7), "verdict": timeout}, "TimedOut", None, None),
        ({}, {"verdict": failed, "written_at": gangs.T0 + 60}, "IndexFailed", None, gangs.T0 + 60),
        ({"finished": True, "failed": True, "condition": gone}, {}, "IndexFailed", None, None),
    ):
        fresh = Made(made.patch)
        fresh.put("a", gangs.waiting_pod(1, created=gangs.T0 - 7), gate=gate, **changes)
        await fresh.board.refresh()
        assert (fresh.row.state, fresh.row.since, fresh.row.ended) == (state, since, ended)


async def test_one_that_timed_out_stays_bad_and_first_when_its_jobset_has_failed(made: Made) -> None:
    made.put("a")
    made.put("done", finished=True)
    words = "timed out after 900s: 12/17 pods started (uid u-late, attempt 0, epoch 0)"
    condition = gangs.condition(names.REASON_TIMED_OUT, words, status="False")
    made.put("late", finished=True, failed=True, condition=condition)
    made.put("own", finished=True, failed=True)
    await made.board.refresh()
    shown = select_page(parse_query(rows.RowKind.GANG, {}), made.board.rows.values())
    found = [(it.name, it.state, it.tone.name, it.started, it.expected) for it in shown.rows]
    assert found == [
        ("late", "TimedOut", "BAD", 12, 17),
        ("own", "Failed", "BAD", None, 2),
        ("a", "Waiting", "WAIT", 0, 2),
        ("done", "Completed", "QUIET", None, 2),
    ]
    assert shown.given_up == (("TimedOut", 1),)
    assert ">?/2<" in html.render("row", row=shown.rows[1], now=made.now)


async def test_a_gang_that_takes_long_to_explain_is_explained_seldom(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_ = made.put("a")

    def slow(seen: GangSnapshot, now: float) -> Any:
        made.now += 1.0
        return made._explain(seen, now)

    monkeypatch.setattr(boards, "explain_gang", slow)
    await made.board.refresh()
    made.board.mark_dirty(key_)
    made.now += boards.REST_FACTOR - 5
    await made.board.refresh()
    assert made.explained == ["a"]
    made.now += 6
    await made.board.refresh()
    assert made.explained == ["a", "a"]


async def test_one_that_cannot_be_explained_is_reported_and_hides_no_other(made: Made) -> None:
    made.put("odd")
    made.put("fine")
    await made.board.refresh()
    assert made.board.rows["gang-default.fine"].state == "Waiting"
    assert made.board.rows["gang-default.odd"].state == "Unknown"
    assert "the controller's log says why" in made.board.rows["gang-default.odd"].message


async def test_after_too_many_changes_everything_is_explained_again(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "MAX_DIRTY", 3)
    made.put("a")
    await made.board.refresh()
    for number in range(5):
        made.put(f"new-{number}")
    made.index.on_workload(ObjectChange(("default", "a"), made.index.get_workload(GangKey("default", "a")), None))
    await made.board.refresh()
    assert sorted(made.board.rows) == [f"gang-default.new-{number}" for number in range(5)]


async def test_groups_come_change_and_go(made: Made) -> None:
    made.groups.put(group_snapshot(pod("a")))
    await made.board.refresh()
    (row,) = made.board.rows.values()
    version = made.board.version
    await made.board.refresh()
    assert made.board.version == version
    made.groups.put(group_snapshot(pod("a"), pod("b")))
    await made.board.refresh()
    assert made.board.rows[row.id].revision > row.revision
    del made.groups.seen[key()]
    await made.board.refresh()
    assert made.board.rows == {}
