"""The table of Jobs that `describe` shows."""

from jobset_gate.cli.printers.description import MOST_ROWS, job_rows
from tests.fakes.gangs import gang, job, jobset, pod, replicated_job

MANY = 2**31 - 1
"""The largest number of replicas there is: a loop over them never ends."""


def test_of_two_billion_jobs_the_first_that_lack_pods_are_shown_and_the_others_counted() -> None:
    spec = replicated_job(replicas=MANY, parallelism=1, completions=1)
    seen = gang(jobset=jobset(spec), jobs=(job(), job(number=MANY - 1)), pods=(pod(0), pod(0, number=MANY - 1)))
    titles, first, *more, last = job_rows(seen)
    assert titles == ("JOB", "STARTED", "STATE")
    assert first == (f"{seen.jobset.name}-{spec.name}-1", "0/1", "not created")
    assert len([first, *more]) == MOST_ROWS
    assert last == (f"and {MANY - MOST_ROWS} more",)
