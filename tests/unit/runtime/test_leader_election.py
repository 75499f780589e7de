"""Leader election: never two that write, never a leader that does nothing (fault 5)."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from itertools import pairwise
from typing import Any

import pytest

from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import KubeError, LeadershipLost, NotLeader
from jobset_gate.runtime.clock import monotonic as now
from jobset_gate.runtime.leader_election import LeaderElector
from tests.fakes.lease_server import LeaseServer, LineFault, random_lines
from tests.fakes.present import present


@pytest.fixture
async def leases() -> AsyncIterator[LeaseServer]:
    """One Lease, not there yet."""
    async with LeaseServer() as server:
        yield server


class Candidate:
    """An elector with a client of its own; leads until it is stopped."""

    def __init__(self, client: Client, name: str, **options: Any) -> None:
        self.client = client
        self.statuses: list[bool] = []
        self.leads = asyncio.Event()
        self.elector = LeaderElector(
            client,
            ("ns", "gate"),
            name,
            rng=random.Random(name),  # noqa: S311 - it must repeat
            on_status=self.statuses.append,
            **({"clock": lambda: 1_700_000_000.0 + now()} | options),
        )
        self.task: asyncio.Task[None] = asyncio.create_task(asyncio.sleep(0))

    def start(self, work: Callable[[], Awaitable[None]] | None = None) -> asyncio.Task[None]:
        self.task = asyncio.create_task(self.elector.run(work or self._work))
        return self.task

    async def stop(self) -> None:
        """As by SIGTERM."""
        self.task.cancel()
        await asyncio.wait([self.task])

    async def _work(self) -> None:
        self.leads.set()
        await asyncio.Event().wait()


Candidates = Callable[..., Awaitable[Candidate]]


@pytest.fixture
async def candidate(leases: LeaseServer) -> AsyncIterator[Candidates]:
    """Makes candidates; each is stopped at the end."""
    async with AsyncExitStack() as stack:

        async def make(name: str, *, identity: str = "", **options: Any) -> Candidate:
            client = await stack.enter_async_context(Client(Access(leases.url), user_agent=name))
            made = Candidate(client, identity or name, **options)
            stack.push_async_callback(made.stop)
            return made

        yield make


@pytest.fixture
async def a(candidate: Candidates) -> Candidate:
    """A candidate that leads."""
    made = await candidate("a")
    made.start()
    await made.leads.wait()
    return made


@asynccontextmanager
async def judged(*candidates: Candidate) -> AsyncIterator[list[tuple[float, str]]]:
    """Asks all guards ten times a second; gives who could write when; fails if two could at once."""
    seen: list[tuple[float, str]] = []

    async def judge() -> None:
        while True:
            able = []
            for one in candidates:
                try:
                    one.elector.guard()
                    able.append(one.elector._identity)
                except NotLeader:
                    continue
            assert len(able) <= 1, f"at {now()}: {able}"
            seen.extend((now(), name) for name in able)
            await asyncio.sleep(0.1)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(judge())
        yield seen
        task.cancel()


async def test_a_free_lease_is_taken_and_kept_and_a_second_candidate_waits(
    leases: LeaseServer, a: Candidate, candidate: Candidates
) -> None:
    """Though its clock is a day ahead: times of two processes are not compared."""
    b = await candidate("b", clock=lambda: 1_700_090_000.0 + now())
    b.start()
    assert a.statuses == [True]
    await asyncio.sleep(300)
    assert not b.leads.is_set()
    assert {name for _, name in leases.writes} == {"a"}
    with pytest.raises(NotLeader):
        b.elector.guard()
    spec = present(leases.lease)["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("a", 15, 0)
    assert spec["acquireTime"] == "2023-11-14T22:13:20.000000Z"
    assert spec["renewTime"] > "2023-11-14T22:18:1"
    assert 130 <= len(leases.writes) <= 160
    assert 8 <= a.elector.guard() <= 10


async def test_a_leader_that_stops_gives_the_lease_back_after_its_work_has_ended(
    leases: LeaseServer, candidate: Candidates
) -> None:
    a, b = await candidate("a"), await candidate("b")
    ended: list[float] = []
    leading = asyncio.Event()

    async def slow_to_end() -> None:
        try:
            leading.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(30)
            assert a.elector.is_leader, "the last writes of an orderly end must be possible"
            ended.append(now())

    a.start(slow_to_end)
    await leading.wait()
    b.start()
    await a.stop()
    assert a.statuses == [True, False]
    await b.leads.wait()
    assert ended[0] <= now() <= ended[0] + 3
    assert present(leases.lease)["spec"]["leaseTransitions"] == 1


@pytest.mark.parametrize("line", [LineFault.HANGS, LineFault.LATE, LineFault.REFUSED])
async def test_a_renewal_that_fails_stops_the_writing_before_another_may_lead(
    leases: LeaseServer, a: Candidate, candidate: Candidates, line: LineFault
) -> None:
    """Between the last moment of the one and the first of the other lie the five seconds for writes on their way."""
    b = await candidate("b")
    b.start()
    async with judged(a, b) as seen:
        await asyncio.sleep(20)
        last = leases.writes[-1][0]
        leases.line = lambda name: line if name == "a" else LineFault.GOOD
        await asyncio.wait([a.task])
        assert isinstance(a.task.exception(), LeadershipLost)
        assert now() - last <= 10.1
        assert a.statuses == [True, False]
        await b.leads.wait()
        await asyncio.sleep(1)
    a_ends = max(at for at, name in seen if name == "a")
    b_begins = min(at for at, name in seen if name == "b")
    assert a_ends - last <= 10
    assert b_begins - a_ends >= 5
    if line is not LineFault.LATE:
        assert 15 <= b_begins - last <= 15 + 2 * 2.4


async def test_a_renewal_counts_from_its_start_not_from_its_answer(leases: LeaseServer, a: Candidate) -> None:
    """The server may have written it at any moment in between."""
    leases.delay = 4.0
    leases.line = lambda _: LineFault.LATE
    start = leases.writes[-1][0] + 2
    await asyncio.sleep(2 + 4 + 0.1)
    assert leases.writes[-1][0] >= start + 4
    assert a.elector.guard() <= start + 10 - now() + 0.1


async def test_a_lost_answer_is_not_a_lost_term(leases: LeaseServer, a: Candidate) -> None:
    """The write was done; the next look shows our own record."""
    for _ in range(10):
        leases.line = lambda _: LineFault.MUTE
        await asyncio.sleep(3)
        leases.line = lambda _: LineFault.GOOD
        await asyncio.sleep(10)
        assert a.elector.is_leader
    assert present(leases.lease)["spec"]["leaseTransitions"] == 0


async def test_a_lease_deleted_under_its_leader_is_not_taken_at_once(
    leases: LeaseServer, a: Candidate, candidate: Candidates
) -> None:
    b = await candidate("b")
    b.start()
    await asyncio.sleep(10)
    async with judged(a, b):
        for _ in range(10):
            leases.lease = None
            await asyncio.sleep(7.3)
    assert leases.holder == "a"
    assert not b.leads.is_set()


async def test_a_leader_stops_when_the_lease_is_taken_from_it(leases: LeaseServer, a: Candidate) -> None:
    leases.edit(holderIdentity="x", acquireTime="2023-01-01T00:00:00.000000Z")
    await asyncio.wait([a.task])
    assert isinstance(a.task.exception(), LeadershipLost)
    assert now() < 6
    assert leases.holder == "x"


async def test_another_process_of_the_same_identity_is_another_candidate(
    leases: LeaseServer, candidate: Candidates
) -> None:
    a, b = await candidate("a", identity="same"), await candidate("b", identity="same")
    a.start()
    await a.leads.wait()
    await asyncio.sleep(1)
    b.start()
    async with judged(a, b):
        await asyncio.sleep(60)
        leases.line = lambda name: LineFault.HANGS if name == "a" else LineFault.GOOD
        await b.leads.wait()
        leases.line = lambda _: LineFault.GOOD
        await asyncio.sleep(60)
    assert isinstance(a.task.exception(), LeadershipLost)


@pytest.mark.parametrize("error", [None, ZeroDivisionError()])
async def test_work_that_ends_or_fails_ends_the_term(
    leases: LeaseServer, candidate: Candidates, error: Exception | None
) -> None:
    a = await candidate("a")

    async def short() -> None:
        await asyncio.sleep(7)
        if error is not None:
            raise error

    with pytest.raises(ZeroDivisionError) if error else nullcontext():
        await a.start(short)
    assert leases.holder == ""
    assert a.statuses == [True, False]
    with pytest.raises(NotLeader):
        a.elector.guard()


async def test_work_that_will_not_end_does_not_keep_a_lost_leader_alive(
    leases: LeaseServer, candidate: Candidates
) -> None:
    a = await candidate("a")
    stop = asyncio.Event()

    async def stubborn() -> None:
        while not stop.is_set():
            try:
                await stop.wait()
            except asyncio.CancelledError:
                continue

    task = a.start(stubborn)
    await asyncio.sleep(5)
    leases.line = lambda _: LineFault.HANGS
    await asyncio.wait([task])
    assert isinstance(task.exception(), LeadershipLost)
    assert now() <= 5 + 15
    stop.set()


@pytest.mark.parametrize("seed", range(3))
async def test_in_any_trouble_there_is_never_more_than_one_leader_and_afterwards_there_is_one(
    leases: LeaseServer, candidate: Candidates, seed: int
) -> None:
    """Three processes, each started again when it has lost; their lines hang, are mute, late, refused at random."""
    trouble = 900.0
    leases.line = random_lines(seed, trouble)
    several = [await candidate(name) for name in "abc"]

    async def again_and_again(one: Candidate) -> None:
        while True:
            task = one.start()
            await asyncio.wait([task])
            assert isinstance(task.exception(), KubeError)
            await asyncio.sleep(1)

    async with judged(*several) as seen:
        runs = [asyncio.create_task(again_and_again(one)) for one in several]
        await asyncio.sleep(trouble + 60)
        assert sum(one.elector.is_leader for one in several) == 1
        for run in runs:
            run.cancel()
        await asyncio.wait(runs)
    assert seen
    terms = [(a, b) for a, b in pairwise(seen) if a[1] != b[1]]
    assert all(b[0] - a[0] >= 5 - 0.11 for a, b in terms), "the five seconds between two leaders"


@pytest.mark.parametrize("deep", [0, 1, 3])
async def test_work_that_met_the_end_of_its_term_says_that_the_lease_is_lost(candidate: Candidates, deep: int) -> None:
    """However many task groups it met it in; what else went wrong comes out as it is."""
    a = await candidate("a")

    async def work() -> None:
        error: BaseException = NotLeader("the lease is not surely ours")
        for _ in range(deep):
            error = BaseExceptionGroup("unhandled errors in a TaskGroup", [error])
        raise error

    with pytest.raises(LeadershipLost):
        await a.elector.run(work)

    async def broken() -> None:
        raise ExceptionGroup("unhandled errors in a TaskGroup", [NotLeader("x"), ValueError("y")])

    b = await candidate("b")
    with pytest.raises(ExceptionGroup) as found:
        await b.elector.run(broken)
    assert found.group_contains(ValueError)
