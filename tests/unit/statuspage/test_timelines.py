"""Timelines of gangs that timed out: of the present generation only, and not in the viewers' way."""

import asyncio

from controllers.statuspage import timelines
from controllers.statuspage.timelines import TimelineRenderer, timed_out_generation
from jobset_gate import names
from jobset_gate.barrier.model import GangKey, Generation, VerdictKind, WorkloadSeen
from tests.fakes import gangs
from tests.fakes.review_api import FakeReviewApi
from tests.fakes.served_page import TIMEOUT

GENERATION = Generation(gangs.UID, 0, 0)


def late(**changes: object) -> WorkloadSeen:
    condition = gangs.condition(names.REASON_TIMED_OUT, "late (uid u-1, attempt 0, epoch 0)", status="False")
    return gangs.jobset(**({"condition": condition} | changes))


def test_only_a_timeout_of_the_present_generation_counts() -> None:
    timeout = gangs.verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT)
    opened = gangs.condition(names.REASON_TIMED_OUT, "opened (uid u-1, attempt 0, epoch 0)")
    for jobset, verdict, expected in (
        (late(), None, GENERATION),
        (late(attempt=1), None, None),
        (late(uid="u-2"), None, None),
        (gangs.jobset(), None, None),
        (gangs.jobset(), timeout, GENERATION),
        (gangs.jobset(attempt=1), timeout, None),
        (late(), gangs.verdict(VerdictKind.RELEASE), None),
        (late(condition=opened), None, None),
    ):
        assert timed_out_generation(jobset, verdict) == expected


async def test_many_timeouts_do_not_keep_viewers_waiting() -> None:
    api = FakeReviewApi()
    seen = gangs.gang(gangs.pod(0), workload=late())
    renderer = TimelineRenderer(api.client(), lambda _: seen, lambda: gangs.T0)
    for number in range(1000):
        renderer.on_gang_change(GangKey("default", f"train-{number}"), late(), None)
    assert len(renderer.tasks) == timelines.MAX_TASKS
    async with asyncio.timeout(TIMEOUT):
        await renderer.of_gang(gangs.gang(gangs.pod(0), workload=gangs.jobset(name="other")))
    assert len(renderer.tasks) <= timelines.MAX_CONCURRENT
    await renderer.stop()
