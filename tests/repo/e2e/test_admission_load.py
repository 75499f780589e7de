"""The user who makes gangs during rollouts: counts what was refused and what got no barrier, and says so."""

import pytest

from e2e.admission_load import AdmissionCounts, has_barrier
from jobset_gate import names
from jobset_gate.fake import manifests
from jobset_gate.fake.objects import Json

BARRIER = manifests.container(names.BARRIER_CONTAINER)


def made(*barriers: bool) -> Json:
    """A JobSet with one replicatedJob for each, that has a barrier or not."""
    jobs = [manifests.replicated_job(f"job-{n}", init_containers=[BARRIER] * has) for n, has in enumerate(barriers)]
    return manifests.jobset(replicated_jobs=jobs)


@pytest.mark.parametrize(("barriers", "held"), [((True, True), True), ((True, False), False), ((False,), False)])
def test_a_gang_is_held_where_all_templates_have_a_barrier(barriers: tuple[bool, ...], held: bool) -> None:
    assert has_barrier(made(*barriers)) is held


def test_nothing_lost_passes() -> None:
    tally = AdmissionCounts()
    tally.add(made(True))
    tally.check()


@pytest.mark.parametrize(
    ("tally", "complaint"),
    [
        (AdmissionCounts(held=9, free=1), "9 gangs got their barrier, 1 did not, 0 were refused"),
        (AdmissionCounts(held=9, refused=["no endpoints"]), r"1 were refused: \['no endpoints'\]"),
        (AdmissionCounts(), "no gang was made at all"),
    ],
)
def test_whatever_was_lost_is_told(tally: AdmissionCounts, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        tally.check()
