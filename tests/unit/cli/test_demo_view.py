"""What the demo sees: counts by Job, times of the stop-watch, and main containers that run too early."""

import msgspec
import pytest

from jobset_gate.barrier.model import BarrierStage, PodSeen
from jobset_gate.cli.demo.frame import ProgressRow
from jobset_gate.cli.demo.gang_view import GangProgress
from tests.fakes import gangs


@pytest.fixture
def gang() -> GangProgress:
    """A gang of two pods."""
    made = GangProgress("train")
    made.jobset = gangs.jobset()
    return made


def running(pod: PodSeen) -> PodSeen:
    return msgspec.structs.replace(pod, stage=BarrierStage.PASSED, main_since=gangs.T0 + 1)


async def test_counts_by_job(gang: GangProgress) -> None:
    gang.on_pod(gangs.waiting_pod(0))
    gang.on_pod(gangs.pod(1))
    assert gang.rows() == [ProgressRow("workers-0", 1, 2, "1/2 started, 1 held, 0 running")]
    gang.on_pod(gangs.pod(1, stage=BarrierStage.FAILED, phase="Failed"))
    assert gang.line() == "1/2 started, 0 held, 0 running, 1 failed (workers-0 1/2)"
    gang.on_pod(gangs.pod(1, deleting=True))
    assert gang.line() == "0/2 started, 0 held, 0 running (workers-0 0/2)"


async def test_a_main_container_that_runs_before_all_have_started_is_early(gang: GangProgress) -> None:
    gang.on_pod(gangs.pod(0))
    gang.on_pod(running(gangs.pod(0)))
    assert gang.early == 1


async def test_one_that_runs_after_all_have_started_is_not_and_the_first_verdict_is_timed(gang: GangProgress) -> None:
    gang.on_pod(gangs.pod(0))
    gang.on_pod(gangs.pod(1))
    gang.on_verdict(gangs.verdict())
    first = gang.decided_at
    gang.on_verdict(gangs.verdict())
    for index in (0, 1):
        gang.on_pod(running(gangs.pod(index)))
    assert (gang.early, gang.running) == (0, 2)
    assert gang.decided_at == first
    assert gang.latency is not None
    assert gang.latency >= 0
    assert (gang.mains_at or 0) >= (first or 0)
