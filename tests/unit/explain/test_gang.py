"""explain(seen, now): why a gang waits, grouped and in others' own words, within so many bytes (A9)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobset_gate import names
from jobset_gate.barrier import messages
from jobset_gate.barrier.count import count_gang
from jobset_gate.barrier.model import BarrierStage, Config, GangSnapshot, MissingByReason, PendingReason, PodSeen
from jobset_gate.explain.gang import explain_gang, explain_ungated
from jobset_gate.explain.model import FailurePolicies, GangState
from jobset_gate.explain.text import format_duration, format_time, headline, missing_line, sentence, time_left
from jobset_gate.sources.table import JOBSET
from tests.fakes import gangs
from tests.fakes.gangs import T0

NOW = T0 + 100
QUOTA = 'Error creating: pods "train-workers-{0}-0-abc{0}" is forbidden: exceeded quota: gpus, used: cpu={0}'


def crowd(*pods: PodSeen, replicas: int = 1, size: int = 40, **changes: object) -> GangSnapshot:
    """A gang of Jobs of `size` pods, with these pods."""
    target = gangs.replicated_job(replicas=replicas, parallelism=size, completions=size)
    jobs = tuple(gangs.job(number=number) for number in range(replicas))
    made = gangs.gang(*pods, workload=gangs.jobset(target), jobs=jobs)
    return msgspec.structs.replace(made, **changes)


def lines_of(seen: GangSnapshot) -> list[str]:
    return [missing_line(group) for group in explain_gang(seen, NOW).missing]


# --- Grouping --------------------------------------------------------------------------------------------------------


def test_pods_that_wait_for_the_same_thing_are_one_group_in_the_words_of_the_one_that_waits_longest() -> None:
    pods = [
        gangs.waiting_pod(index, detail=f"0/{40 + index} nodes: {index} Insufficient gpu", created=T0 - index)
        for index in range(37)
    ]
    seen = crowd(*pods, *(gangs.pod(index) for index in range(37, 40)))
    slots = ", ".join(f"workers-0/{index}" for index in range(36, 26, -1)) + " and 27 more"
    assert lines_of(seen) == [f"37 pods: Unscheduled: 0/76 nodes: 36 Insufficient gpu ({slots})"]


def test_groups_come_longest_waiting_first_and_what_was_never_there_last() -> None:
    seen = crowd(
        gangs.waiting_pod(0, detail="no room", created=T0 - 5),
        gangs.waiting_pod(3, detail="no room", created=T0 - 5),
        gangs.waiting_pod(1, PendingReason.IMAGE_PULL, 'main: ErrImagePull: "x" not found', created=T0 - 50),
        gangs.waiting_pod(2, PendingReason.TERMINATING, "is being deleted", created=T0 - 20, deleting=True),
        size=5,
    )
    found = [group.reason for group in explain_gang(seen, NOW).missing]
    assert found == ["ImagePull", "Terminating", "Unscheduled", "NotCreated"]


def test_one_quota_is_one_group_however_many_jobs_and_pods_it_refused() -> None:
    denials = tuple((f"train-workers-{number}", QUOTA.format(number)) for number in range(3))
    seen = crowd(replicas=3, size=2, denials=denials)
    (group,) = explain_gang(seen, NOW).missing
    assert (group.reason, group.count, group.oldest_created_at) == ("QuotaDenied", 6, None)
    assert "exceeded quota: gpus" in group.message
    assert "train-workers-0-0-abc0" not in group.message  # one of six
    assert group.command == "kubectl describe resourcequota -n default"


def test_tries_and_pauses_of_one_pull_are_one_group_with_the_words_that_say_most() -> None:
    pause = 'main: ImagePullBackOff: Back-off pulling image "x:1"'
    attempt = 'main: ErrImagePull: failed to pull image "x:1": manifest unknown: no such tag in the registry'
    other = 'main: ImagePullBackOff: Back-off pulling image "y:1"'
    pods = [
        gangs.waiting_pod(index, PendingReason.IMAGE_PULL, words) for index, words in enumerate((pause, attempt, other))
    ]
    assert [(group.count, group.message) for group in explain_gang(crowd(*pods, size=3), NOW).missing] == [
        (2, attempt),
        (1, other),
    ]


DESCRIBE = "kubectl describe pod train-workers-0-0 -n default"
EVENTS = "kubectl get events -n default --field-selector involvedObject.name=train-workers-0-0"
FETCH = gangs.waiting_pod(0, PendingReason.EARLIER_INIT, "fetch is still running")
CRASH = gangs.waiting_pod(0, PendingReason.CRASH_LOOP, "load: CrashLoopBackOff: exit code 1")
EVICTED = gangs.waiting_pod(0, PendingReason.NOT_CREATED, "Evicted", phase="Failed")
REFUSED = (("train-workers-0", 'pods "x" is forbidden: no service account'),)


@pytest.mark.parametrize(
    ("seen", "command"),
    [
        (crowd(gangs.waiting_pod(0), size=1), DESCRIBE),
        (crowd(FETCH, size=1), "kubectl logs train-workers-0-0 -c fetch -n default"),
        (crowd(CRASH, size=1), "kubectl logs train-workers-0-0 -c load -n default"),
        (crowd(EVICTED, size=1), DESCRIBE),
        (crowd(gangs.waiting_pod(0), size=1, provisioning=frozenset({"train-workers-0-0"})), EVENTS),
        (crowd(size=1, denials=REFUSED), "kubectl describe job train-workers-0 -n default"),
        (crowd(size=1, jobs=()), "kubectl describe jobset train -n default"),
    ],
    ids=["no node", "init container", "crash", "failed pod", "provisioning", "refused", "no Job"],
)
def test_the_next_command_shows_what_holds_the_first_pod_up(seen: GangSnapshot, command: str) -> None:
    assert explain_gang(seen, NOW).commands == (command,)


# --- Where it stands -------------------------------------------------------------------------------------------------


def test_a_gang_that_waits_tells_its_count_and_how_much_time_is_left() -> None:
    seen = gangs.gang(gangs.pod(0), gangs.waiting_pod(1), config_map=gangs.config_map(waiting_since=gangs.clock()))
    it = explain_gang(seen, NOW)
    assert (it.state, it.started, it.expected, it.left) == (GangState.WAITING, 1, 2, 200.0)
    assert (it.parts[0].name, it.parts[0].started, it.parts[0].expected) == ("workers", 1, 2)
    assert time_left(it) == "3m20s left of 5m"
    assert headline(it) == "JobSet default/train: Waiting: 1/2 pods started"


def test_without_a_clock_no_time_is_left() -> None:
    it = explain_gang(gangs.gang(), NOW)
    assert (it.left, time_left(it)) == (None, "the timeout of 5m begins when the first pod starts")
    assert it.afterwards
    it = explain_gang(gangs.gang(workload=gangs.jobset(config=Config())), NOW)
    assert (it.left, time_left(it), it.afterwards) == (None, "no timeout is set: it waits for ever", "")


def test_a_released_gang_tells_when_and_why() -> None:
    condition_ = gangs.condition(names.REASON_STARTED, "as decided (uid u-1, attempt 0, epoch 0)")
    pods = (gangs.pod(0, stage=BarrierStage.PASSED), gangs.pod(1))
    gate = gangs.config_map(verdict=gangs.verdict())
    seen = gangs.gang(*pods, workload=gangs.jobset(condition=condition_), config_map=gate)
    it = explain_gang(seen, NOW)
    assert (it.state, it.message, it.passed, it.missing) == (GangState.RELEASED, "as decided", 1, ())
    assert format_time(it.decided or 0) == "2027-01-15T08:00:00Z"
    assert time_left(it) == ""


@pytest.mark.parametrize(
    ("pods", "now", "words"),
    [
        (2, NOW, "the gate is due to open (all 2 pods started), as soon as a controller says so"),
        (1, NOW + 300, "the gang is due to be ended (timed out after 300s: 1/2 pods started"),
    ],
)
def test_what_nobody_has_decided_yet_is_due(pods: int, now: float, words: str) -> None:
    seen = gangs.gang(*map(gangs.pod, range(pods)), config_map=gangs.config_map(waiting_since=gangs.clock()))
    it = explain_gang(seen, now)
    assert (it.state, it.message.startswith(words)) == (GangState.DUE, True)


NO_BARRIER = (gangs.replicated_job(has_barrier=False),)
UNDECIDED = "the JobSet has failed; before that, no verdict on its gate"


@pytest.mark.parametrize(
    ("changes", "state", "words"),
    [
        ({"suspended": True}, GangState.SUSPENDED, "spec.suspend is true"),
        ({"deleting": True}, GangState.DELETING, "is being deleted"),
        ({"finished": True}, GangState.COMPLETED, "the JobSet has completed"),
        ({"finished": True, "failed": True}, GangState.FAILED, UNDECIDED),
        ({"managed_elsewhere": True}, GangState.MANAGED_ELSEWHERE, "spec.managedBy names another controller"),
        ({"replicated_jobs": NO_BARRIER}, GangState.GATE_MISSING, "the webhook of jobset-gate was not there"),
    ],
)
def test_what_does_not_wait_says_so(changes: dict[str, object], state: GangState, words: str) -> None:
    it = explain_gang(gangs.gang(workload=gangs.jobset(**changes)), NOW)
    assert (it.state, words in it.message, it.missing, it.left) == (state, True, (), None)
    assert it.commands


def test_a_config_map_of_another_client_and_a_queue_are_shown_by_their_own_commands() -> None:
    it = explain_gang(gangs.gang(config_map=None, config_map_conflict=True), NOW)
    assert it.state == GangState.CONFIG_MAP_CONFLICT
    assert it.commands == ("kubectl get configmap train-group-scheduling -n default -o yaml",)
    queued = gangs.gang(workload=gangs.jobset(suspended=True))
    it = explain_gang(queued, NOW, policy=FailurePolicies(queue="gpus"))
    assert it.message.startswith("Kueue has not admitted it (queue gpus)")
    assert it.commands == ("kubectl describe workloads.kueue.x-k8s.io -n default",)


# --- Not seen --------------------------------------------------------------------------------------------------------


def test_a_jobset_that_asks_for_no_gate() -> None:
    it = explain_ungated(JOBSET, "default", "train", NOW)
    assert (it.state, names.CONFIG in it.message, it.missing) == (GangState.NOT_GATED, True, ())


def test_who_may_not_see_pods_gets_the_controllers_last_word_and_no_invented_numbers() -> None:
    lacking = [MissingByReason(reason="Unscheduled", message="no room", count=2)]
    waits = messages.waiting(gangs.gang(), count_gang(gangs.gang()), lacking)
    condition_ = gangs.condition(waits.reason, waits.message, status="False")
    it = explain_gang(
        gangs.gang(workload=gangs.jobset(condition=condition_)), NOW, unknown=["cannot list pods"], pods_forbidden=True
    )
    assert (it.state, it.started, it.missing) == (GangState.WAITING, None, ())
    assert it.message.startswith("the controller said: 0/2 pods started; missing: 2 pods: Unscheduled: no room; ")
    assert it.unknown == ("cannot list pods",)
    clock = gangs.config_map(waiting_since=gangs.clock())
    it = explain_gang(gangs.gang(config_map=clock), NOW + 300, pods_forbidden=True)
    assert (it.state, it.message) == (GangState.WAITING, "how many pods have started is not known"), "not due"


# --- What happens at the timeout -------------------------------------------------------------------------------------

KUBELETS = "kubelets restart it, with the same result, until backoffLimit 6 is used up and the"
PER_INDEX = "with backoffLimitPerIndex 0 each index fails at once, and the Job when all its indexes have ended"
JOBSET_GANG, JOB_GANG = gangs.gang(gangs.pod(0)), gangs.job_gang(gangs.pod(0))


@pytest.mark.parametrize(
    ("seen", "policy", "words"),
    [
        (JOBSET_GANG, {"backoff_limits": (6,)}, f"{KUBELETS} Jobs fail"),
        (JOBSET_GANG, {"backoff_limits": (0, 6), "restarts_in_place": False}, "until backoffLimit 0 or 6 is used up"),
        (JOBSET_GANG, {"backoff_limits": (0,)}, "its Job fails at once; without a failurePolicy the"),
        (JOBSET_GANG, {"exit_actions": ("FailJob",)}, "podFailurePolicy says FailJob to that"),
        (JOBSET_GANG, {"max_restarts": 3, "counted": 1}, "restarts all its Jobs (2 of 3 restarts are left)"),
        (JOBSET_GANG, {"max_restarts": 3, "counted": 3}, "the JobSet fails: 3 of 3 restarts are used"),
        (JOBSET_GANG, {"max_restarts": 1, "rules": ("FailJobSet",)}, "rule of the failurePolicy that fits decides"),
        (JOBSET_GANG, None, "what follows is up to backoffLimit and failurePolicy"),
        (JOB_GANG, {"backoff_limits": (6,)}, f"{KUBELETS} Job fails"),
        (JOB_GANG, {"backoff_limits": (2,), "restarts_in_place": False}, "backoffLimit 2 is used up, then it fails"),
        (JOB_GANG, {"backoff_limits": (0,)}, "with backoffLimit 0 the Job fails at once"),
        (JOB_GANG, {"backoff_limits": (0,), "per_index": True, "restarts_in_place": False}, PER_INDEX),
        (JOB_GANG, None, "what follows is up to backoffLimit and podFailurePolicy"),
    ],
)
def test_what_follows_from_a_timeout_is_what_the_user_has_written(
    seen: GangSnapshot, policy: dict[str, Any] | None, words: str
) -> None:
    """A Job that is a gang itself fails, and never restarts."""
    said = explain_gang(seen, NOW, policy=None if policy is None else FailurePolicies(**policy)).afterwards
    assert said.startswith("every barrier ends with exit code 124; ")
    assert said.endswith(words) if seen is JOB_GANG else words in said


def test_a_gang_of_a_job_is_explained_without_names_that_it_does_not_have() -> None:
    seen = gangs.job_gang(gangs.pod(0), gangs.waiting_pod(1, detail="no room"))
    it = explain_gang(seen, NOW, pod="train-workers-0-1")
    assert headline(it) == "Job default/train: Waiting: 1/2 pods started"
    assert (it.source, it.parts, it.subject and it.subject.slot) == ("job", (), "1")
    assert [missing_line(group) for group in it.missing] == ["1 pod: Unscheduled: no room (1)"]
    seen = gangs.job_gang()
    seen = msgspec.structs.replace(seen, workload=msgspec.structs.replace(seen.workload, suspended=True))
    patch = """kubectl patch job train -n default --type=merge -p '{"spec":{"suspend":false}}'"""
    assert explain_gang(seen, NOW).commands == (patch,)


def test_a_gang_that_is_released_on_timeout_goes_on_without_the_missing() -> None:
    seen = gangs.gang(gangs.pod(0), workload=gangs.jobset(releases_on_timeout=True))
    assert explain_gang(seen, NOW).afterwards.startswith("the gate opens without those that are missing")


# --- One pod ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (gangs.waiting_pod(0, detail="no room"), "Unscheduled: no room"),
        (gangs.pod(0), "has started and waits in the barrier"),
        (gangs.pod(0, stage=BarrierStage.PASSED), "has gone through the barrier"),
        (gangs.pod(0, attempt=7), "belongs to an earlier life or restart of the JobSet"),
    ],
)
def test_the_pod_that_is_named_is_explained_alone(pod: PodSeen, words: str) -> None:
    subject = explain_gang(gangs.gang(pod), NOW, pod="train-workers-0-0").subject
    assert subject is not None
    assert (subject.slot, subject.message) == ("workers-0/0", words)


# --- Within so many bytes --------------------------------------------------------------------------------------------

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters=";"), max_size=200)
MISSING = st.lists(
    st.builds(
        MissingByReason,
        reason=st.sampled_from(["Unscheduled", "ImagePull"]),
        message=WORDS,
        count=st.integers(1, 10_000),
    ),
    max_size=30,
)


@given(missing=MISSING)
def test_no_missing_pod_is_lost_for_lack_of_room(missing: list[MissingByReason]) -> None:
    entries = sentence("", missing, 700).removeprefix("; missing: ").split("; ")
    shown = [it for it in entries if ": Unscheduled" in it or ": ImagePull" in it]
    rest = [it for it in entries if it.startswith("and ")]
    many = sum(int(it.split()[0]) for it in shown) + sum(int(it.split()[1]) for it in rest)
    assert many == sum(group.count for group in missing)


def test_all_reasons_come_before_whole_sentences_about_the_first() -> None:
    long = [MissingByReason(reason=f"Reason{number}", message="x" * 900, count=number + 1) for number in range(5)]
    text = sentence("0/15 pods started", long, 1024)
    assert all(f"Reason{number}" in text for number in range(5))


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0s"), (59.9, "59s"), (60, "1m"), (250, "4m10s"), (7500, "2h5m"), (180_000, "2d2h")]
)
def test_spans_of_time_are_written_as_people_do(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
