"""What the demo sees: counts by Job, times of the stop-watch, and main containers that run too early."""

import msgspec
import pytest

from jobset_gate.barrier.model import BarrierStage, PodSeen
from jobset_gate.cli.demo.gang_view import GangWatcher, JobRow
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.runtime.store import ObjectChange
from tests.fakes import gangs


@pytest.fixture
async def watcher() -> GangWatcher:
    """Sees a gang of two pods; nothing is connected."""
    made = GangWatcher(Client(Access("http://127.0.0.1:1")), ("train",), "default")
    made._jobset(ObjectChange(("default", "train"), None, gangs.jobset()))
    return made


def tell(watcher: GangWatcher, old: PodSeen | None, new: PodSeen | None) -> None:
    pod = new or old
    assert pod is not None
    watcher._pod(ObjectChange((pod.namespace, pod.name), old, new))


def running(pod: PodSeen) -> PodSeen:
    return msgspec.structs.replace(pod, stage=BarrierStage.PASSED, main_since=gangs.T0 + 1)


async def test_counts_by_job(watcher: GangWatcher) -> None:
    tell(watcher, None, gangs.waiting_pod(0))
    tell(watcher, None, gangs.pod(1))
    assert watcher.gangs["train"].rows() == [JobRow("workers-0", expected=2, started=1, held=1, running=0, failed=0)]
    tell(watcher, gangs.pod(1), gangs.pod(1, stage=BarrierStage.FAILED, phase="Failed"))
    assert watcher.gangs["train"].rows() == [JobRow("workers-0", expected=2, started=1, held=0, running=0, failed=1)]
    tell(watcher, gangs.waiting_pod(0), None)
    assert list(watcher.gangs["train"].pods) == [gangs.pod(1).name]


async def test_a_main_container_that_runs_before_all_have_started_is_early(watcher: GangWatcher) -> None:
    tell(watcher, None, gangs.pod(0))
    tell(watcher, gangs.pod(0), running(gangs.pod(0)))
    assert watcher.gangs["train"].early == 1


async def test_one_that_runs_after_all_have_started_is_not(watcher: GangWatcher) -> None:
    gang = watcher.gangs["train"]
    for index in (0, 1):
        tell(watcher, None, gangs.pod(index))
    assert gang.last_start_at is not None
    watcher._config_map(
        ObjectChange(("default", "train-group-scheduling"), None, gangs.config_map(verdict=gangs.verdict()))
    )
    for index in (0, 1):
        tell(watcher, gangs.pod(index), running(gangs.pod(index)))
    assert (gang.early, gang.running) == (0, 2)
    assert gang.decided_at is not None
    assert gang.last_start_at <= gang.decided_at <= (gang.mains_at or 0)


async def test_the_first_verdict_is_the_one_that_is_timed(watcher: GangWatcher) -> None:
    gang = watcher.gangs["train"]
    change = ObjectChange(("default", "train-group-scheduling"), None, gangs.config_map(verdict=gangs.verdict()))
    watcher._config_map(ObjectChange(change.key, None, gangs.config_map()))
    assert gang.verdict is None
    watcher._config_map(change)
    first = gang.decided_at
    watcher._config_map(change)
    assert gang.decided_at == first


async def test_other_gangs_are_not_looked_at(watcher: GangWatcher) -> None:
    tell(watcher, None, gangs.pod(0, gang="other"))
    watcher._jobset(ObjectChange(("default", "other"), None, gangs.jobset(name="other")))
    assert watcher.gangs["train"].pods == {}
    assert list(watcher.gangs) == ["train"]


async def test_waiting_for_what_never_comes_ends(watcher: GangWatcher) -> None:
    assert not await watcher.until(lambda: False, 0)
    assert await watcher.until(lambda: True, 0)
