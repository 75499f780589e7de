"""The benchmarks' gangs are what the controller takes for gangs, and the benchmarks of each source run."""

from __future__ import annotations

import random
from collections import Counter

import msgspec
import pytest

from bench import latency, writes
from bench.gangs import GangPlan, GangPods, PodStep, job_as_stored, jobs, new_uid, workload
from bench.latency import LatencyResult
from bench.scale import Scale
from jobset_gate.barrier import wire
from jobset_gate.sources import decode
from jobset_gate.sources.table import JOB, JOBSET, START_GROUP

NOW = 1_790_000_000.0


def test_the_pods_of_a_job_belong_to_its_gang_and_have_started() -> None:
    plan = GangPlan("run", 1, 4, source=JOB.name)
    rng = random.Random(1)  # noqa: S311 - UIDs of pods that nobody runs
    (job,) = [job_as_stored(it, rng, NOW) for it in jobs(workload(plan))]
    seen = decode.job(msgspec.json.decode(msgspec.json.encode(job), type=wire.Job))
    assert seen.workload is not None
    assert seen.workload.key == plan.key
    assert [(it.parallelism, it.indexed, it.has_barrier) for it in seen.workload.replicated_jobs] == [(4, True, True)]
    its = GangPods(job, NOW)
    pods = [its.stored(index, PodStep.HELD, new_uid(rng)) for index in range(plan.size)]
    found = [decode.pod(msgspec.json.decode(msgspec.json.encode(pod), type=wire.Pod)) for pod in pods]
    assert {(it.source, it.gang, it.workload_uid) for it in found} == {(JOB.name, "run", job["metadata"]["uid"])}
    assert [(it.index, it.started) for it in found] == [(index, True) for index in range(4)]


@pytest.mark.parametrize(("seconds", "met"), [(0.0109, True), (0.0112, False)])
def test_a_decision_for_a_job_is_held_against_that_for_a_jobset(seconds: float, met: bool) -> None:
    result = {JOBSET.name: LatencyResult([0.010], [0.001]), JOB.name: LatencyResult([seconds], [0.001])}
    target = latency.table({("embedded", source): its for source, its in result.items()}, 1000).targets[-1]
    assert target.met is met


@pytest.mark.parametrize(("more", "met"), [(0, True), (1, False)])
def test_writes_for_a_job_are_held_against_those_for_a_jobset(more: int, met: bool) -> None:
    found = {(20, JOBSET.name): Counter({"patch pods": 20}), (20, JOB.name): Counter({"patch pods": 20 + more})}
    (target,) = writes.table(found).targets
    assert target.met is met


async def test_gangs_of_each_source_are_decided() -> None:
    (table,) = await latency.run(Scale(0.001), real=False)
    assert [row[:2] for row in table.rows] == [["embedded", it] for it in (JOBSET.name, JOB.name, START_GROUP.name)]
    assert all(0 < seconds < 60 for name, its in table.samples.items() if "decisions" in name for seconds in its)
    assert {len(its) for name, its in table.samples.items() if "decisions" in name} == {2}
