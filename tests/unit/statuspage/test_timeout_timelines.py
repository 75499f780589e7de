"""Pictures of gangs that timed out: of the present generation only, and never more bytes than there is room for."""

import asyncio

from controllers.statuspage import timelines, timeout_timelines
from controllers.statuspage.timelines import TimelineRenderer
from controllers.statuspage.timeout_timelines import TimeoutTimelines, timed_out_generation
from jobset_gate import names
from jobset_gate.barrier.model import GangKey, Generation, JobSetSeen, VerdictKind
from tests.fakes import gangs
from tests.fakes.review_api import FakeReviewApi
from tests.fakes.served_page import PATIENCE

ITS = Generation(gangs.UID, 0, 0)


def late(**changes: object) -> JobSetSeen:
    told = gangs.condition(names.REASON_TIMED_OUT, "late (uid u-1, attempt 0, epoch 0)", status="False")
    return gangs.jobset(**({"condition": told} | changes))


def test_only_a_timeout_of_the_present_generation_is_one() -> None:
    assert timed_out_generation(late(), None) == ITS
    assert timed_out_generation(late(attempt=1), None) is None
    assert timed_out_generation(late(uid="u-2"), None) is None
    assert timed_out_generation(gangs.jobset(), None) is None
    assert timed_out_generation(gangs.jobset(), gangs.verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT)) == ITS
    assert (
        timed_out_generation(gangs.jobset(attempt=1), gangs.verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT))
        is None
    )
    assert timed_out_generation(late(), gangs.verdict(VerdictKind.RELEASE)) is None
    opened = gangs.condition(names.REASON_TIMED_OUT, "opened (uid u-1, attempt 0, epoch 0)")
    assert timed_out_generation(late(condition=opened), None) is None


def test_the_oldest_go_when_there_is_no_room_for_more() -> None:
    kept, size = TimeoutTimelines(), timeout_timelines.MOST_BYTES // 4
    for number in range(10):
        kept.keep(GangKey("default", f"train-{number}"), ITS, bytes(size))
    there = [number for number in range(10) if kept.of(GangKey("default", f"train-{number}"), ITS) is not None]
    assert there == [6, 7, 8, 9]
    assert kept.bytes == 4 * size
    for number in range(10):
        kept.drop(GangKey("default", f"train-{number}"))
    assert kept.bytes == 0


async def test_a_crowd_of_timeouts_does_not_keep_viewers_waiting_behind_it() -> None:
    cluster = FakeReviewApi()
    seen = gangs.gang(gangs.pod(0), jobset=late())
    made = TimelineRenderer(cluster.client(), lambda _: seen, lambda: gangs.T0)
    for number in range(1000):
        made.on_gang_change(GangKey("default", f"train-{number}"), late(), None)
    assert made.under_way == timelines.MOST_AT_ONCE
    async with asyncio.timeout(PATIENCE):
        await made.gang_svg(GangKey("default", "other"), gangs.gang(gangs.pod(0)))
    assert made.under_way <= timelines.AT_ONCE
    assert made.kept_bytes > 0
    await made.stop()
