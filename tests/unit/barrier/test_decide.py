"""A5-A7, A9, A10: what is decided about a gang, from facts and a time alone."""

from typing import Any

import msgspec
import pytest

from jobset_gate import names
from jobset_gate.barrier import messages, verdict_codec
from jobset_gate.barrier.decide import decide
from jobset_gate.barrier.decision import Blocked, Decide, Enforce, Ignore, Wait
from jobset_gate.barrier.model import (
    BarrierStage,
    Config,
    ConfigMapSeen,
    GangSnapshot,
    PendingReason,
    PodSeen,
    VerdictKind,
    WaitingSince,
)
from tests.fakes.gangs import (
    NOW,
    T0,
    UID,
    clock,
    condition,
    config_map,
    decided,
    gang,
    generation,
    job,
    jobset,
    pod,
    replicated_job,
    slot,
    verdict,
    waiting_pod,
)

pytestmark = pytest.mark.usefixtures("each_source")

OLD = jobset(created=T0 - 900)
BOTH = (pod(0), pod(1))


def half(**changes: Any) -> GangSnapshot:
    """Of two pods one has started."""
    return gang(pod(0), waiting_pod(1), **changes)


def since(at: float = T0, **where: Any) -> ConfigMapSeen:
    """A ConfigMap that holds a clock."""
    return config_map(waiting_since=clock(at, **where))


def passed(index: int, **changes: Any) -> PodSeen:
    fields: dict[str, Any] = {"stage": BarrierStage.PASSED, "phase": "Running"} | changes
    return pod(index, **fields)


@pytest.mark.parametrize("changes", [{}, {"bypass": True}, {"created": T0 - 10**7}], ids=["", "bypassed", "late"])
def test_a_suspended_gang_waits_whatever_runs(changes: dict[str, Any]) -> None:
    clock_ = since(T0 - 10**6) if "created" in changes else config_map()
    decision = decided(Wait, gang(*BOTH, workload=jobset(suspended=True, **changes), config_map=clock_))
    assert decision.condition.message == "suspended"
    assert decision.requeue_after is None


@pytest.mark.parametrize("at", [NOW, T0 + 300], ids=["before its timeout", "at its timeout"])
def test_a_gang_is_released_once_the_last_pod_has_started(at: float) -> None:
    decision = decided(Decide, gang(*BOTH, config_map=since()), at)
    assert decision.verdict.kind is VerdictKind.RELEASE
    assert decision.verdict.generation == generation()
    assert decision.condition == messages.decided(decision.verdict)
    assert decision.condition.status == "True"


# --- Generations -----------------------------------------------------------------------------------------------------

DECIDED = config_map(verdict=verdict())
TIMED_OUT = config_map(verdict=verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT))
STANDING = {
    "a later pod of the generation": gang(passed(0), waiting_pod(1), config_map=DECIDED),
    "pods that never saw a quick suspension": gang(
        passed(0), passed(1), workload=jobset(replicated_job(epoch=1)), config_map=DECIDED
    ),
    "a later attempt than the cached JobSet shows": gang(*BOTH, config_map=config_map(verdict=verdict(attempt=1))),
    "a timeout before the last pod": gang(*BOTH, config_map=TIMED_OUT),
    "a timeout before the bypass": gang(pod(0), workload=jobset(bypass=True), config_map=TIMED_OUT),
}


@pytest.mark.parametrize("seen", STANDING.values(), ids=STANDING)
def test_a_verdict_stands(seen: GangSnapshot) -> None:
    decision = decided(Enforce, seen)
    assert seen.config_map is not None
    assert decision.verdict == seen.config_map.verdict


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (gang(pod(0, workload_uid="u-2"), workload=jobset(uid="u-2")), "another life of the JobSet"),
        (gang(pod(0, attempt=1), workload=jobset(attempt=1), jobs=(job(attempt=1),)), "another attempt"),
        (gang(pod(0, epoch=1)), "a younger epoch on a pod"),
        (gang(workload=jobset(replicated_job(epoch=1))), "a younger epoch in the template and no pod yet"),
    ],
)
def test_a_verdict_does_not_stand_for(seen: GangSnapshot, why: str) -> None:
    seen = msgspec.structs.replace(seen, config_map=config_map(verdict=verdict()))
    assert isinstance(decide(seen, NOW), Wait), why


@pytest.mark.parametrize(
    ("seen", "epoch"),
    [
        (gang(pod(0, epoch=1), pod(1, epoch=2)), 2),
        (gang(passed(0), pod(1, epoch=1), config_map=DECIDED), 1),
        (gang(pod(0), workload=jobset(replicated_job(epoch=4), bypass=True)), 4),
    ],
    ids=["highest counted", "half-seen suspension", "bypass covers the template"],
)
def test_a_verdict_names_the_highest_epoch(seen: GangSnapshot, epoch: int) -> None:
    decision = decided(Decide, seen)
    assert decision.verdict.generation.epoch == epoch


# --- Timeout ---------------------------------------------------------------------------------------------------------

RESUMED = jobset(replicated_job(epoch=1))
AHEAD = since(T0 - 900, attempt=1)
KEPT = since(T0 - 200)
OTHERS = config_map(workload_uid="u-0", verdict=verdict(), waiting_since=clock())
WAITS = {
    # Kubelets round down, so a second is granted.
    "the first started pod": (half(), clock(T0 + 1), T0 + 301),
    # By the controller's clock, and in no whole seconds.
    "the first announcement": (
        gang(waiting_pod(0), waiting_pod(1), announced={"pod-workers-0-1": T0 + 2.25}),
        clock(T0 + 2.25),
        T0 + 302.25,
    ),
    "an announcement for an older epoch": (
        gang(waiting_pod(0), waiting_pod(1, epoch=1), workload=RESUMED, announced={"pod-workers-0-0": T0 - 900}),
        clock(NOW, epoch=1),
        NOW + 300,
    ),
    "no started pod": (gang(waiting_pod(0), waiting_pod(1)), None, None),
    # New nodes may take longer than the timeout; a fresh gang would wait for them as well.
    "a slot that finished before a resume": (
        gang(waiting_pod(1, epoch=1), workload=RESUMED, jobs=(job(completed=frozenset({0})),)),
        None,
        None,
    ),
    "a node's clock ahead": (gang(pod(0, barrier_since=NOW + 900), waiting_pod(1)), clock(NOW), NOW + 300),
    "a stored clock": (half(config_map=KEPT, workload=OLD), clock(T0 - 200), T0 + 100),
    "a stored clock before the JobSet": (half(config_map=since(T0 - 3600), workload=OLD), clock(T0 + 1), T0 + 301),
    "a stored clock in the future": (half(config_map=since(T0 + 3600), workload=OLD), clock(T0 + 1), T0 + 301),
    "resumed, no pod yet": (
        gang(waiting_pod(0, epoch=1), waiting_pod(1, epoch=1), workload=RESUMED, config_map=KEPT),
        None,
        None,
    ),
    "resumed": (
        gang(pod(0, epoch=1), waiting_pod(1, epoch=1), workload=RESUMED, config_map=KEPT),
        clock(T0 + 1, epoch=1),
        T0 + 301,
    ),
    # One pod kept running through a half-seen suspension; its start is not the new generation's.
    "an older pod that passed": (
        gang(passed(0, barrier_since=T0 - 900), waiting_pod(1, epoch=1), config_map=DECIDED),
        clock(NOW, epoch=1),
        NOW + 300,
    ),
    # The cached JobSet is older than the other client's.
    "a clock of a later attempt": (half(config_map=AHEAD), AHEAD.waiting_since, None),
    "no timeout": (half(workload=jobset(config=Config()), config_map=since()), clock(), None),
    "another JobSet's ConfigMap": (half(config_map=OTHERS), clock(T0 + 1), T0 + 301),
}


@pytest.mark.parametrize(("seen", "expected", "deadline"), WAITS.values(), ids=WAITS)
def test_the_clock_is_that_of(seen: GangSnapshot, expected: WaitingSince | None, deadline: float | None) -> None:
    decision = decided(Wait, seen)
    assert decision.clock == expected
    assert decision.requeue_after == (None if deadline is None else pytest.approx(deadline - NOW))


def test_who_waits_keeps_the_verdict_on_an_older_generation() -> None:
    """Also when its ConfigMap is lost: a pod of that generation may still read it."""
    known = verdict_codec.parse_membership({names.KEY_ATTEMPT: "0", names.KEY_MEMBERS: "a"})
    lost = gang(workload=jobset(suspended=True, condition=SAID_RELEASE), config_map=None, membership=known)
    assert decided(Wait, lost).verdict == messages.verdict_in_condition(SAID_RELEASE, UID)
    assert decided(Wait, gang(workload=jobset(suspended=True), config_map=DECIDED)).verdict == verdict()


def test_controllers_whose_clocks_differ_agree_on_one_that_is_kept() -> None:
    """Each finds right what the other has put right: they do not answer each other for ever."""
    waits = gang(pod(0, barrier_since=NOW + 1000), waiting_pod(1), workload=OLD)
    written = msgspec.structs.replace(waits, config_map=since(NOW + 900))
    behind = decided(Wait, written)
    assert behind.clock == clock(NOW)
    again = msgspec.structs.replace(waits, config_map=config_map(waiting_since=behind.clock))
    assert decided(Wait, again, NOW + 100).clock == behind.clock


def test_no_clock_is_made_for_a_pod_that_a_younger_verdict_covers() -> None:
    """The gate was opened for epoch 1, and a pod of epoch 0 has only now started."""
    decision = decided(
        Enforce, gang(pod(0), config_map=config_map(verdict=verdict(epoch=1)), workload=jobset(replicated_job(epoch=1)))
    )
    assert decision.clock is None


def test_at_the_timeout_the_gang_fails_together_and_the_missing_are_named() -> None:
    late = gang(pod(0), waiting_pod(1, PendingReason.IMAGE_PULL, "pytorch: ImagePullBackOff"), config_map=since())
    decision = decided(Decide, late, T0 + 300)
    assert decision.verdict.kind is VerdictKind.TIMEOUT
    assert decision.verdict.cause == names.REASON_TIMED_OUT
    assert decision.verdict.message == (
        f"timed out after 300s: 1/2 pods started; missing: 1 pod: ImagePull: pytorch: ImagePullBackOff ({slot(1)})"
    )
    assert decision.condition.status == "False"


def test_on_timeout_release_opens_the_gate_and_says_who_is_missing() -> None:
    decision = decided(Decide, half(workload=jobset(releases_on_timeout=True), config_map=since()), T0 + 300)
    assert decision.verdict.kind is VerdictKind.RELEASE
    assert decision.verdict.cause == names.REASON_TIMED_OUT
    assert decision.verdict.message.startswith("opened after its timeout of 300s: 1/2 pods started; missing: ")
    assert slot(1) in decision.verdict.message
    assert decision.condition.status == "True"


def test_the_bypass_opens_the_gate_now() -> None:
    decision = decided(Decide, half(workload=jobset(bypass=True)))
    assert decision.verdict.kind is VerdictKind.RELEASE
    assert decision.condition.reason == names.REASON_BYPASSED


# --- When things are not as they should be ---------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{"deleting": True}, {"finished": True}, {"managed_elsewhere": True}])
def test_a_jobset_that_is_finished_going_or_managed_elsewhere_is_left_in_peace(changes: dict[str, Any]) -> None:
    assert isinstance(decide(gang(*BOTH, workload=jobset(**changes)), NOW), Ignore)


def test_templates_without_a_barrier_are_reported_not_waited_for_unless_they_have_no_pods() -> None:
    bare = jobset(replicated_job(), replicated_job("loaders", has_barrier=False))
    decision = decided(Blocked, gang(*BOTH, workload=bare))
    assert decision.condition.reason == names.REASON_GATE_MISSING
    assert "loaders" in decision.condition.message
    seen = gang(*BOTH, workload=jobset(replicated_job(), replicated_job("none", replicas=0, has_barrier=False)))
    assert isinstance(decide(seen, NOW), Decide)


def test_another_owners_configmap_keeps_the_gate_closed_and_is_reported() -> None:
    decision = decided(Blocked, gang(*BOTH, config_map=None, config_map_conflict=True))
    assert decision.condition.reason == names.REASON_CONFIG_MAP_CONFLICT
    assert decision.requeue_after is not None


SAID_RELEASE = condition(names.REASON_STARTED, "all started (uid u-1, attempt 0, epoch 0)")
SAID_TIMEOUT = condition(names.REASON_TIMED_OUT, "timed out (uid u-1, attempt 0, epoch 0)", status="False")
RELEASED = pod(0, verdict=verdict_codec.render(verdict()))
FAILED = pod(0, verdict=verdict_codec.render(verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT)))
TRACES = {
    "a barrier has passed": (gang(passed(0), waiting_pod(1), config_map=None), VerdictKind.RELEASE),
    "a pod has the release": (gang(RELEASED, waiting_pod(1)), VerdictKind.RELEASE),
    "a pod has the timeout": (gang(FAILED, pod(1), config_map=None), VerdictKind.TIMEOUT),
    "we said so": (half(config_map=None, workload=jobset(condition=SAID_RELEASE)), VerdictKind.RELEASE),
    "we said timeout": (gang(*BOTH, workload=jobset(condition=SAID_TIMEOUT)), VerdictKind.TIMEOUT),
}


@pytest.mark.parametrize(("seen", "kind"), TRACES.values(), ids=TRACES)
def test_a_decision_whose_configmap_was_lost_is_restored_not_taken_again(seen: GangSnapshot, kind: VerdictKind) -> None:
    decision = decided(Enforce, seen)
    assert decision.verdict.kind is kind
    assert decision.verdict.generation == generation()


def test_a_verdict_that_this_process_saw_is_not_taken_again_though_it_left_no_trace_yet() -> None:
    """Its ConfigMap was deleted before any watch has shown the condition or a patched pod."""
    timed_out = verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT)
    decision = decided(Enforce, gang(*BOTH, config_map=None, remembered=timed_out))
    assert decision.verdict == timed_out
    assert isinstance(decide(gang(*BOTH, config_map=None, remembered=verdict(uid="u-0")), NOW), Decide)


def test_traces_of_older_generations_prove_nothing() -> None:
    seen = gang(
        pod(0, attempt=1, verdict=verdict_codec.render(verdict())),
        pod(1, attempt=0, stage=BarrierStage.PASSED),
        workload=jobset(
            attempt=1, condition=condition(names.REASON_STARTED, "all started (uid u-1, attempt 0, epoch 7)")
        ),
        jobs=(job(attempt=1),),
    )
    assert isinstance(decide(seen, NOW), Wait)


@pytest.mark.parametrize("words", ["uid u-0, attempt 2, epoch 3", "attempt 2, epoch 3", "uid , attempt 2, epoch 3"])
def test_a_condition_proves_nothing_for_a_jobset_that_it_does_not_name(words: str) -> None:
    """It was written for a deleted JobSet of the same name, or by a version that did not say for which."""
    reported = condition(names.REASON_TIMED_OUT, f"timed out ({words})", status="False")
    assert messages.verdict_in_condition(reported, UID) is None
    assert isinstance(decide(gang(*BOTH, config_map=config_map(), workload=jobset(condition=reported)), NOW), Decide)
