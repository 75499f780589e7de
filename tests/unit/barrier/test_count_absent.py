"""A4, A9: counting a gang costs time for existing objects. A user may create a JobSet of two billion Jobs."""

import pytest

from jobset_gate.barrier import count
from jobset_gate.barrier.decide import decide
from jobset_gate.barrier.decision import Wait
from jobset_gate.barrier.missing import missing_by_reason
from jobset_gate.explain.gang import explain_gang
from tests.fakes.gangs import T0, gang, job, jobset, missing_slots, pod, replicated_job, waiting_pod

pytestmark = pytest.mark.usefixtures("each_source")

MANY = 2**31 - 1
"""The largest number of replicas there is: a client that goes through them one by one never comes back."""


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize(("jobs", "pods"), [(MANY, 1), (1, MANY)], ids=["jobs", "pods"])
def test_a_gang_of_two_billion_is_counted_and_explained_at_once(jobs: int, pods: int, indexed: bool) -> None:
    target = replicated_job(replicas=jobs, parallelism=pods, completions=pods, indexed=indexed)
    seen = gang(workload=jobset(target), jobs=(job(),))
    decision = decide(seen, T0)
    assert isinstance(decision, Wait)
    assert (decision.started, decision.expected) == (0, MANY)
    assert sum(it.count for it in decision.missing) == MANY
    assert explain_gang(seen, T0).expected == MANY


def test_jobs_of_the_highest_numbers_are_counted_with_those_that_are_missing() -> None:
    seen = gang(
        workload=jobset(replicated_job(replicas=MANY, parallelism=1, completions=1)),
        jobs=(job(number=5), job(number=MANY - 1), job(number=MANY)),
        pods=(pod(0, number=5), pod(0, number=MANY - 1), pod(0, number=MANY)),
    )
    tally = count.count_gang(seen)
    assert (tally.started, tally.expected) == (2, MANY)


@pytest.mark.parametrize("indexed", [True, False])
def test_slots_of_missing_jobs_are_named_as_if_each_were_looked_at_alone(indexed: bool) -> None:
    spec = replicated_job(replicas=4, parallelism=2, completions=3, indexed=indexed)
    index = 0 if indexed else None
    seen = gang(workload=jobset(spec), jobs=(job(number=2),), pods=(waiting_pod(index, number=2),))
    named = [(it.job_index, it.index) for it in missing_slots(seen)]
    first, second = (0, 1) if indexed else (None, None)
    assert named == [(0, first), (0, second), (1, first), (1, second), (2, first), (2, second), (3, first), (3, second)]
    alone = [
        number for run in count.list_job_slots(seen) for number in range(run.job_index, run.job_index + run.repeat)
    ]
    assert alone == [0, 1, 2, 3]


def test_the_first_ten_slots_of_many_missing_jobs_are_named_and_all_are_counted() -> None:
    (lack,) = missing_by_reason(
        gang(workload=jobset(replicated_job(replicas=100, parallelism=4, completions=4)), jobs=())
    )
    assert lack.count == 400
    assert lack.slots == tuple(f"workers-{number // 4}/{number % 4}" for number in range(10))
