"""What the demo sees: main containers that run too early, and none once all have started."""

import msgspec

from jobset_gate.barrier.model import BarrierStage, PodSeen
from jobset_gate.cli.demo.gang_view import GangProgress
from tests.fakes import gangs


def running(pod: PodSeen) -> PodSeen:
    return msgspec.structs.replace(pod, stage=BarrierStage.PASSED, main_since=gangs.T0 + 1)


async def test_a_main_container_is_early_until_all_pods_have_started() -> None:
    for started, early in ((1, 1), (2, 0)):
        progress = GangProgress("train")
        progress.jobset = gangs.jobset()
        for index in range(started):
            progress.on_pod(gangs.pod(index))
        progress.on_pod(running(gangs.pod(0)))
        assert progress.early == early
