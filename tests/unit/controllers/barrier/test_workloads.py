"""What is written on a workload's status: of a Job the condition by type and UID, and no stale start (K4, K7)."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.barrier.status import GangStatusWriter
from controllers.barrier.workloads import get_workload
from jobset_gate import names
from jobset_gate.barrier.model import DesiredCondition, GangKey, WorkloadSeen
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import JOBS
from jobset_gate.runtime.store import ObjectVersion
from jobset_gate.runtime.workqueue import Requeue, WorkQueue
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.memory_api import Api, Json
from tests.fakes.memory_client import Call, MemoryClient
from tests.fakes.wire_objects import bare_job, read_job

RUN = GangKey("team-a", "run", "job")
PROGRESS = DesiredCondition(status="False", reason=names.REASON_WAITING, message="suspended")
START = "2026-08-01T10:00:00Z"
SUSPENDED = {"type": "Suspended", "status": "True"}


class JobHarness:
    """A Job in the API, and a writer that knows it as its informer showed it last."""

    def __init__(self, api: Api, memory: MemoryClient, clock: VirtualClock) -> None:
        self.api, self._calls = api, memory.calls
        self._seen: Json = {}
        self.writer = GangStatusWriter(memory.client, clock, WorkQueue[GangKey](), version=lambda _: self._version)

    def store(self, **changes: Any) -> None:
        """The Job is so from now on, and the informer shows it."""
        self.api.put(JOBS, bare_job(**changes))
        self.show()

    def show(self) -> None:
        self._seen = self.stored

    @property
    def stored(self) -> Json:
        return self.api.known(JOBS, "run", "team-a")

    @property
    def _version(self) -> ObjectVersion:
        meta = self._seen["metadata"]
        return ObjectVersion(meta["uid"], meta["resourceVersion"])

    @property
    def seen(self) -> WorkloadSeen:
        found = read_job(self._seen).workload
        assert found is not None
        return found

    async def write(self, condition: DesiredCondition = PROGRESS) -> None:
        self.writer.set_desired(self.seen, condition)
        await self.writer.reconcile(RUN)

    @property
    def patches(self) -> list[Call]:
        return [call for call in self._calls if call.verb == "patch"]


@pytest.fixture
def run(api: Api, memory: MemoryClient, clock: VirtualClock) -> JobHarness:
    return JobHarness(api, memory, clock)


async def test_the_condition_joins_those_of_the_job_controller(run: JobHarness) -> None:
    run.store(suspend=True, status={"conditions": [SUSPENDED]})
    await run.write()
    (call,) = run.patches
    assert (call.kind, call.subresource) == (JOBS, "status")
    kinds = {it["type"]: it["status"] for it in run.stored["status"]["conditions"]}
    assert kinds == {"Suspended": "True", names.CONDITION: "False"}


async def test_a_job_that_changed_meanwhile_gets_its_condition_all_the_same(run: JobHarness) -> None:
    run.store()
    seen = run.seen
    run.api.change(JOBS, "run", lambda job: job["status"].update(active=3), namespace="team-a")
    run.writer.set_desired(seen, PROGRESS)
    await run.writer.reconcile(RUN)
    assert {it["type"] for it in run.stored["status"]["conditions"]} == {names.CONDITION}


# --- A stale start ---------------------------------------------------------------------------------------------------


async def test_a_stale_start_is_cleared_in_the_write_of_the_condition(run: JobHarness) -> None:
    run.store(suspend=True, status={"startTime": START, "conditions": [SUSPENDED]})
    await run.write()
    assert "startTime" not in run.stored["status"]
    assert len(run.patches) == 1


async def test_a_stale_start_is_cleared_though_the_condition_stands(run: JobHarness) -> None:
    """The Job controller reports the suspension after the condition says so."""
    run.store(suspend=True, status={"startTime": START, "active": 2})
    await run.write()
    assert run.stored["status"]["startTime"] == START
    run.api.change(JOBS, "run", lambda job: job["status"].update(active=0), namespace="team-a")
    run.api.change(JOBS, "run", lambda job: job["status"]["conditions"].append(SUSPENDED), namespace="team-a")
    run.show()
    await run.write()
    assert "startTime" not in run.stored["status"]
    run.show()
    await run.write()
    assert len(run.patches) == 2


async def test_where_the_job_controller_clears_it_nothing_more_is_written(run: JobHarness) -> None:
    """From Kubernetes 1.36 on."""
    run.store(suspend=True, status={"startTime": START, "active": 2})
    await run.write()
    cleared = {"active": 0, "conditions": [*run.stored["status"]["conditions"], SUSPENDED]}
    run.api.change(JOBS, "run", lambda job: job.update(status=cleared), namespace="team-a")
    run.show()
    await run.write()
    assert len(run.patches) == 1


async def test_the_start_of_a_job_that_was_resumed_meanwhile_stays(run: JobHarness) -> None:
    run.store(suspend=True, status={"startTime": START, "conditions": [SUSPENDED]})
    run.api.change(JOBS, "run", lambda job: job["spec"].update(suspend=False), namespace="team-a")
    with pytest.raises(Requeue):
        await run.write()
    assert run.stored["status"]["startTime"] == START


# --- Reads -----------------------------------------------------------------------------------------------------------


async def test_the_workload_is_read_from_the_api(run: JobHarness, memory: MemoryClient) -> None:
    run.store()
    assert await get_workload(memory.client, run.seen) == run.seen
    seen = run.seen
    run.store(meta={"name": "run", "namespace": "team-a", "labels": {}})
    assert await get_workload(memory.client, seen) is None
    run.api.remove(JOBS, "run", namespace="team-a")
    with pytest.raises(NotFound):
        await get_workload(memory.client, seen)
