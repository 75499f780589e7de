"""An edited ConfigMap is reported from one that merely came before the rest of the news (A6, A10)."""

import msgspec
import pytest

from jobset_gate import names
from jobset_gate.barrier import integrity, messages, verdict_codec
from jobset_gate.barrier.model import ConditionSeen, GangSnapshot, Verdict, VerdictKind, WorkloadSeen
from tests.fakes.gangs import clock, condition, config_map, gang, jobset, pod, replicated_job, verdict
from tests.fakes.present import present

pytestmark = pytest.mark.usefixtures("each_source")

RELEASE = verdict()
TIMEOUT = verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT)


def telling(decision: Verdict) -> ConditionSeen:
    """Our condition as it says so."""
    reported = messages.decided(decision)
    return condition(reported.reason, reported.message, reported.status)


def held(kept: Verdict | None, remembered: Verdict | None = None, reported: Verdict | None = None) -> GangSnapshot:
    """A gang whose ConfigMap holds this, and what else is known."""
    said = telling(reported) if reported else None
    return gang(workload=jobset(condition=said), config_map=config_map(verdict=kept), remembered=remembered)


def settled(seen: GangSnapshot, live: WorkloadSeen) -> tuple[Verdict | None, bool]:
    """What is believed, and whether the ConfigMap is to be written."""
    found = integrity.without_edits(seen, live)
    assert found.config_map is not None
    return found.config_map.verdict, not found.config_map.canonical


FITS = {
    "no ConfigMap": gang(config_map=None),
    "nothing known": held(RELEASE),
    "remembered": held(RELEASE, RELEASE),
    "reported": held(RELEASE, reported=RELEASE),
    "another one of a later attempt": held(RELEASE, verdict(VerdictKind.TIMEOUT, attempt=1)),
    "remembered, and the condition edited": held(RELEASE, RELEASE, TIMEOUT),
    "of an earlier life": held(verdict(uid="u-0"), RELEASE),
    "another's ConfigMap": gang(config_map=config_map(verdict=verdict(attempt=7), workload_uid="u-0")),
    "a clock": gang(config_map=config_map(waiting_since=clock())),
    "of an epoch whose only a pod tells": gang(pod(0, epoch=3), config_map=config_map(verdict=verdict(epoch=3))),
}


@pytest.mark.parametrize("seen", FITS.values(), ids=FITS)
def test_what_fits_is_not_doubted(seen: GangSnapshot) -> None:
    assert not integrity.needs_verification(seen)


DOUBTFUL = {
    "edited into a release": held(RELEASE, TIMEOUT),
    "edited into a timeout": held(TIMEOUT, RELEASE),
    "edited while no controller ran": held(RELEASE, reported=TIMEOUT),
    "an older one edited": held(RELEASE, verdict(attempt=1), TIMEOUT),
    "of a later attempt": held(verdict(attempt=1)),
    "of a later epoch": held(verdict(epoch=1)),
    "a clock of a later attempt": gang(config_map=config_map(waiting_since=clock(attempt=1))),
    "a clock of a later epoch": gang(config_map=config_map(verdict=RELEASE, waiting_since=clock(epoch=1))),
    "of an epoch of another life": gang(
        pod(0, epoch=3, workload_uid="u-0"), config_map=config_map(verdict=verdict(epoch=3))
    ),
}


@pytest.mark.parametrize("seen", DOUBTFUL.values(), ids=DOUBTFUL)
def test_what_does_not_fit_is(seen: GangSnapshot) -> None:
    assert integrity.needs_verification(seen)


@pytest.mark.parametrize("live", [jobset(), jobset(condition=telling(TIMEOUT))], ids=["not reported yet", "reported"])
def test_the_first_verdict_of_a_generation_is_put_back(live: WorkloadSeen) -> None:
    kept, writes = settled(held(RELEASE, TIMEOUT), live)
    assert kept is not None
    assert (kept.kind, kept.generation, writes) == (VerdictKind.TIMEOUT, TIMEOUT.generation, True)


def test_a_memory_that_came_too_late_gives_way_to_what_was_reported_or_sent_to_a_pod() -> None:
    """This process first saw the edit, and another client has put it right."""
    sent = gang(
        pod(0, verdict=verdict_codec.render(TIMEOUT)), config_map=config_map(verdict=TIMEOUT), remembered=RELEASE
    )
    for seen, live in ((held(TIMEOUT, RELEASE), jobset(condition=telling(TIMEOUT))), (sent, jobset())):
        found = integrity.without_edits(seen, live)
        for believed in (found.remembered, present(found.config_map).verdict):
            assert present(believed).kind is VerdictKind.TIMEOUT
        assert not integrity.needs_verification(found), "and it is settled"


@pytest.mark.parametrize(
    ("kept", "live", "stays"),
    [
        (verdict(attempt=1), jobset(attempt=1), True),
        (verdict(attempt=1), jobset(attempt=2), True),
        (verdict(epoch=1), jobset(replicated_job(epoch=1)), True),
        (verdict(attempt=1), jobset(), False),
        (verdict(epoch=1), jobset(), False),
    ],
)
def test_a_verdict_that_came_before_the_news_of_its_jobset_stays_if_the_api_knows_of_its_generation(
    kept: Verdict, live: WorkloadSeen, stays: bool
) -> None:
    assert settled(held(kept), live) == ((kept, False) if stays else (None, True))


def test_a_clock_of_a_generation_that_the_api_does_not_know_goes_and_the_verdict_stays() -> None:
    seen = gang(config_map=config_map(verdict=RELEASE, waiting_since=clock(attempt=9)), remembered=RELEASE)
    found = integrity.without_edits(seen, jobset())
    assert found.config_map == msgspec.structs.replace(config_map(verdict=RELEASE), canonical=False)
