"""A4, A9: counting a gang costs time for existing objects. A user may create a JobSet of two billion Jobs."""

import pytest

from jobset_gate.barrier import count
from jobset_gate.barrier.decision import Wait
from jobset_gate.explain.gang import explain_gang
from tests.fakes.gangs import T0, decided, gang, job, jobset, pod, replicated_job

pytestmark = pytest.mark.usefixtures("each_source")

MANY = 2**31 - 1
"""The largest number of replicas there is: a client that goes through them one by one never comes back."""


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize(("jobs", "pods"), [(MANY, 1), (1, MANY)], ids=["jobs", "pods"])
def test_a_gang_of_two_billion_is_counted_and_explained_at_once(jobs: int, pods: int, indexed: bool) -> None:
    target = replicated_job(replicas=jobs, parallelism=pods, completions=pods, indexed=indexed)
    seen = gang(workload=jobset(target), jobs=(job(),))
    decision = decided(Wait, seen, T0)
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
