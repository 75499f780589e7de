"""Which attempt the pods of a start group are: it lasts while one live pod belongs to it (K5)."""

import pytest

from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.member import Membership
from jobset_gate.barrier.model import BarrierStage, PodSeen
from jobset_gate.sources import startgroup
from tests.fakes.gangs import pod, verdict

KEPT = Membership(attempt=2, members=frozenset({"old"}))
OLD, NEW = pod(uid="old"), pod(uid="new")
RELEASED = verdict_codec.render(verdict(attempt=2))
OVER = pod(uid="over", phase="Succeeded", stage=BarrierStage.PASSED, verdict=RELEASED)
ATTEMPTS: dict[str, tuple[list[PodSeen], Membership | None, int]] = {
    "the first pods": ([NEW], None, 0),
    "a ConfigMap that was deleted, a pod with a verdict": ([NEW, pod(uid="x", verdict=RELEASED)], None, 2),
    "an older ConfigMap than a pod's verdict": ([pod(uid="x", verdict=RELEASED)], Membership(attempt=1), 2),
    "before any clock": ([NEW], Membership(attempt=2), 2),
    "a member that lives": ([OLD, NEW], KEPT, 2),
    "a pod that has passed": ([pod(uid="x", stage=BarrierStage.PASSED), NEW], KEPT, 2),
    "a pod with its verdict": ([pod(uid="x", verdict=RELEASED), NEW], KEPT, 2),
    "no live pod at all": ([], KEPT, 2),
    "all are new": ([NEW], KEPT, 3),
    "the member is being deleted": ([pod(uid="old", deleting=True), NEW], KEPT, 3),
    "the member has failed": ([pod(uid="old", phase="Failed"), NEW], KEPT, 3),
    "a ConfigMap that was deleted, and all who had its verdict have ended": ([OVER, NEW], None, 3),
    "one made again by who knew less, and all who had the verdict have ended": ([OVER, NEW], Membership(attempt=0), 3),
    "the member has succeeded": ([pod(uid="old", phase="Succeeded", verdict=RELEASED), NEW], KEPT, 3),
}


@pytest.mark.parametrize("name", ATTEMPTS)
def test_an_attempt_lasts_while_one_live_pod_belongs_to_it(name: str) -> None:
    pods, kept, attempt = ATTEMPTS[name]
    assert startgroup.attempt_of(pods, kept) == attempt


def test_what_is_remembered_is_not_lost_to_a_config_map_that_was_made_again_and_says_less() -> None:
    made_again, higher = Membership(attempt=2), Membership(attempt=3)
    assert startgroup.latest(KEPT, made_again) is KEPT
    assert startgroup.latest(KEPT, Membership(attempt=0, members=frozenset({"x"}))) is KEPT
    assert startgroup.latest(KEPT, higher) is higher
    assert startgroup.latest(KEPT, None) is KEPT
    assert startgroup.latest(None, made_again) is made_again
