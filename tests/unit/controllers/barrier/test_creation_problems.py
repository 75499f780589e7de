"""While a gang waits for pods that a quota refuses, its condition says so in the quota's words; others cost nothing."""

from __future__ import annotations

import asyncio

import pytest

from controllers.barrier.creation_problems import FIRST_POLL_AFTER, POLL_EVERY, CreationProblems
from controllers.barrier.live_reader import LiveReader
from jobset_gate.barrier.decide import decide
from jobset_gate.barrier.decision import Wait
from jobset_gate.barrier.model import GangSnapshot
from tests.fakes import gangs
from tests.fakes.call_blocker import CallBlocker
from tests.fakes.gangs import decided
from tests.fakes.memory_api import Api
from tests.fakes.memory_client import MemoryClient
from tests.unit.controllers.barrier.test_live_reader import tell

LACKING = gangs.gang(gangs.pod(0))
"""Its second pod was never made."""
WORDS = 'Error creating: pods "x" is forbidden: exceeded quota: gpus'


@pytest.fixture
def hearing(memory: MemoryClient) -> CreationProblems:
    return CreationProblems(LiveReader(memory.client))


async def passes(hearing: CreationProblems, seen: GangSnapshot = LACKING) -> tuple[str, float | None]:
    """What the condition says in this pass, and when the next one is due."""
    decision = decided(Wait, hearing.with_known(seen), gangs.T0)
    return decision.condition.message, await hearing.poll(seen, decision.missing)


@pytest.mark.parametrize(
    ("seen", "slot"), [(LACKING, "workers-0/1"), (gangs.job_gang(gangs.pod(0)), "1")], ids=["jobset", "job"]
)
async def test_what_a_quota_refuses_is_reported_once_it_has_lasted(
    api: Api, hearing: CreationProblems, api_calls: CallBlocker, seen: GangSnapshot, slot: str
) -> None:
    tell(api, "Job", seen.jobs[0].name, "FailedCreate", WORDS)
    before, wait = await passes(hearing, seen)
    assert f"1 pod: NotCreated: the Job controller has not created it yet ({slot})" in before
    assert (wait, len(api_calls.calls)) == (FIRST_POLL_AFTER, 0)
    await asyncio.sleep(FIRST_POLL_AFTER)
    assert (await passes(hearing, seen))[1] == 0
    said, wait = await passes(hearing, seen)
    assert f"missing: 1 pod: QuotaDenied: {WORDS} ({slot}); " in said
    assert (wait, len(api_calls.calls)) == (POLL_EVERY, 1)


async def test_all_gangs_of_a_namespace_are_served_by_one_question(
    hearing: CreationProblems, api_calls: CallBlocker
) -> None:
    others = [gangs.gang(gangs.pod(0), workload=gangs.jobset(name=f"other-{number}")) for number in range(20)]
    for seen in others:
        await passes(hearing, seen)
    await asyncio.sleep(FIRST_POLL_AFTER)
    for seen in others:
        assert (await passes(hearing, seen))[1] == POLL_EVERY
    assert len(api_calls.calls) == 1


async def test_a_quota_that_was_raised_is_not_reported_of_any_more(api: Api, hearing: CreationProblems) -> None:
    tell(api, "Job", "train-workers-0", "FailedCreate", WORDS)
    await passes(hearing)
    await asyncio.sleep(FIRST_POLL_AFTER)
    await passes(hearing)
    made = gangs.gang(gangs.pod(0), gangs.waiting_pod(1))
    assert await passes(hearing, made) == (decide(made, gangs.T0).condition.message, None)  # type: ignore[union-attr]
