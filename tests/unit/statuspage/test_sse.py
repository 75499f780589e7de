"""An open page gets the changes and no more, while its viewer may see them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from controllers.statuspage import rows, sse
from controllers.statuspage.auth import Visibility
from controllers.statuspage.query import ListQuery
from controllers.statuspage.source import Freshness
from controllers.statuspage.sse import ListFeed
from controllers.statuspage.view import MAX_PAGES
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.errors import Unreachable
from tests.fakes import gangs
from tests.fakes.eventually import PATIENCE
from tests.fakes.podgroups.objects import key, pod
from tests.fakes.podgroups.snapshots import group_snapshot
from tests.fakes.served_page import ServedPage, events, http_session, serve_page

News = AsyncIterator[tuple[str, Any]]


@pytest.fixture
async def stage() -> AsyncIterator[ServedPage]:
    async with serve_page() as made:
        made.page.streams.refresh_seconds = 0.02
        made.api.admin()
        made.put(gangs.jobset(), gangs.pod(0))
        made.put(gangs.jobset(name="other", uid="u-2"), gangs.pod(0))
        yield made


@pytest.fixture
async def viewer(stage: ServedPage) -> AsyncIterator[aiohttp.ClientSession]:
    async with http_session(stage, "admin-token") as session:
        yield session


async def next_event(news: News, event: str = "view") -> Any:
    """The next of these; heartbeats are let pass."""
    async with asyncio.timeout(PATIENCE):
        async for kind, data in news:
            if kind == event:
                return data
    raise AssertionError("the stream has ended")


async def until(news: News, word: str) -> Any:
    """The first that says so."""
    while word not in str(said := await next_event(news)):
        pass
    return said


async def test_a_list_shows_a_release_as_it_happens_and_only_the_line_that_changed(
    stage: ServedPage, viewer: aiohttp.ClientSession
) -> None:
    async with viewer.get("/events") as answer:
        assert answer.content_type == "text/event-stream"
        news = events(answer)
        first = await next_event(news)
        assert set(first["rows"]) == {"gang-default.train", "gang-default.other"}
        train = stage.put(gangs.jobset(), gangs.pod(0), gangs.pod(1))
        stage.decide(train)
        said, order = await next_event(news), first["order"]
        while "Released" not in str(said):
            order = said.get("order", order)
            said = await next_event(news)
        assert set(said["rows"]) == {"gang-default.train"}
        assert 'data-state="Released"' in said["rows"]["gang-default.train"]
        assert said.get("order", order) == ["gang-default.other", "gang-default.train"]
        assert 'data-state="Released" data-count="1"' in said["parts"]["summary"]


async def test_a_gang_that_comes_or_goes_comes_or_goes_on_the_page(
    stage: ServedPage, viewer: aiohttp.ClientSession
) -> None:
    stage.put(gangs.jobset(namespace="elsewhere", uid="u-4"), gangs.pod(0))
    async with viewer.get("/events?sort=name&namespace=default") as answer:
        news = events(answer)
        assert (await next_event(news))["order"] == ["gang-default.other", "gang-default.train"]
        new = stage.put(gangs.jobset(name="new", uid="u-3"), gangs.pod(0))
        assert (await next_event(news))["order"] == ["gang-default.new", "gang-default.other", "gang-default.train"]
        stage.drop(new)
        said = await next_event(news)
        assert said["order"] == ["gang-default.other", "gang-default.train"]
        assert "rows" not in said


async def test_a_gangs_page_turns_from_waiting_to_timed_out_and_ends_with_the_gang(
    stage: ServedPage, viewer: aiohttp.ClientSession
) -> None:
    async with viewer.get("/gangs/default/train/events") as answer:
        news = events(answer)
        assert 'data-state="Waiting"' in (await next_event(news))["parts"]["about"]
        key = stage.put(gangs.jobset(), gangs.pod(0))
        stage.decide(key, VerdictKind.TIMEOUT)
        said = await until(news, "TimedOut")
        assert 'id="given-up"' in said["parts"]["about"]
        assert said["title"].startswith("default/train: TimedOut")
        stage.drop(key)
        await next_event(news, "end")


async def test_a_group_is_followed_too(stage: ServedPage, viewer: aiohttp.ClientSession) -> None:
    stage.groups.put(group_snapshot(pod("a")))
    async with viewer.get("/groups/events") as answer:
        news = events(answer)
        (id_,) = (await next_event(news))["rows"]
        async with viewer.get(f"/group-events/team/{id_}") as single:
            follows = events(single)
            await next_event(follows)
            stage.groups.put(group_snapshot(pod("a"), pod("b")))
            await until(follows, "<dd>2</dd>")
        assert set((await until(news, id_))["rows"]) == {id_}


async def test_freshness_is_sent_when_it_changes(stage: ServedPage, viewer: aiohttp.ClientSession) -> None:
    async with viewer.get("/events") as answer:
        news = events(answer)
        assert "Watches connected." in (await next_event(news))["parts"]["fresh"]
        stage.fresh = Freshness(lost=("pods",), lost_for=7.0)
        stage.put(gangs.jobset(), gangs.pod(0), gangs.pod(1))
        assert "Old: no watch of pods" in (await next_event(news))["parts"]["fresh"]


# --- Whether he still may --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ["token", "right", "api", "session"])
async def test_it_ends_when_token_right_or_session_is_gone_or_nobody_can_tell(stage: ServedPage, lost: str) -> None:
    member = stage.api.member("default")
    async with http_session(stage) as session:
        await session.post("/login", data={"token": member})
        async with session.get("/events") as answer:
            news = events(answer)
            await next_event(news)
            if lost == "token":
                del stage.api.users[member]
            elif lost == "right":
                stage.api.grants.clear()
            elif lost == "api":
                stage.api.failing = Unreachable("refused")
            else:
                await session.post("/logout")
            stage.elapsed += 60
            stage.put(gangs.jobset(), gangs.pod(0), gangs.pod(1))
            await next_event(news, "end")


async def test_whose_group_it_is_is_read_and_not_what_the_address_says(stage: ServedPage) -> None:
    """An id can be worked out from a name, and the namespace in the address is the viewer's own."""
    stage.groups.put(group_snapshot(pod("a", namespace="other"), of=key("secret", namespace="other")))
    await stage.page.view.refresh()
    (row,) = stage.page.view.rows_of(rows.RowKind.GROUP)
    async with (
        http_session(stage, stage.api.member("default")) as session,
        session.get(f"/group-events/default/{row.id}") as answer,
    ):
        async with asyncio.timeout(PATIENCE):
            assert [it async for it in events(answer)] == [("end", "over")]


# --- Limits ----------------------------------------------------------------------------------------------------------


async def test_one_viewer_holds_only_so_many(stage: ServedPage) -> None:
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            http_session(stage, "admin-token", connector=aiohttp.TCPConnector(limit=0))
        )
        for _ in range(sse.MAX_STREAMS_PER_VIEWER):
            assert (await stack.enter_async_context(session.get("/events"))).status == 200
        async with session.get("/events") as one_more:
            assert one_more.status == 503
            assert "Too many pages are open" in await one_more.text()
        async with session.get("/") as page:
            assert page.status == 200
        other = stage.api.member("default")
        async with session.get("/events", headers={"Authorization": f"Bearer {other}"}) as answer:
            assert answer.status == 200


async def test_a_place_is_free_again_when_its_reader_goes(stage: ServedPage, viewer: aiohttp.ClientSession) -> None:
    async with viewer.get("/events") as answer:
        await next_event(events(answer))
        assert stage.page.streams.open == 1
    async with asyncio.timeout(PATIENCE):
        number = 0
        while stage.page.streams.open:  # only the next write shows that a reader has gone
            number += 1
            stage.put(gangs.jobset(created=float(number)), gangs.pod(number % 2))
            await asyncio.sleep(0.02)


class Stuck:
    """A connection whose reader takes nothing."""

    def __init__(self) -> None:
        self.transport = self
        self.aborted = False

    async def prepare(self, _: object) -> None: ...

    async def write(self, _: bytes) -> None:
        await asyncio.Event().wait()

    def abort(self) -> None:
        self.aborted = True


async def test_a_viewer_who_does_not_read_is_disconnected(stage: ServedPage) -> None:
    stage.page.streams.write_timeout = 0.01
    stuck: Any = Stuck()

    async def check() -> Visibility | None:
        return Visibility(frozenset())

    feed = ListFeed(stage.page.view, ListQuery(rows.RowKind.GANG), lambda: stage.fresh)
    async with asyncio.timeout(PATIENCE):
        await stage.page.streams.serve(stuck, stuck, "admin", feed.next_update, check)
    assert stuck.aborted
    assert stage.page.streams.open == 0


async def test_a_viewer_who_looks_for_one_word_after_the_other_fills_no_memory(stage: ServedPage) -> None:
    view = stage.page.view
    for number in range(2 * MAX_PAGES):
        view.page_of(ListQuery(rows.RowKind.GANG, text=f"word-{number}"), Visibility(frozenset()))
    assert 0 < len(view.pages) <= MAX_PAGES


async def test_open_pages_do_not_keep_the_controller_from_ending() -> None:
    async with AsyncExitStack() as stack:
        async with serve_page() as stage:
            stage.api.admin()
            session = await stack.enter_async_context(http_session(stage, "admin-token"))
            answer = await stack.enter_async_context(session.get("/events"))
            news = events(answer)
            await next_event(news)
        async with asyncio.timeout(PATIENCE):
            assert [kind async for kind, _ in news if kind == "view"] == []
