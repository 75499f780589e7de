"""The index joins the informers' changes by gang, and wakes a gang no oftener than it has to."""

import msgspec
import pytest

from controllers.barrier.cache import LATE_POD_DELAY, PROGRESS_DELAY, GangCache
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import BarrierStage, ConfigMapSeen, GangKey, GangSnapshot, JobSeen, PodSeen, WorkloadSeen
from jobset_gate.runtime.store import ObjectChange
from tests.fakes.gangs import config_map, job, jobset, pod, replicated_job, verdict, waiting_pod
from tests.fakes.start_group_controller import NAME, OWNER, PASSED, RING, RUNS, SPACE, addressed, member, read_member
from tests.fakes.wire_objects import Json, read_config_map

TRAIN = GangKey("default", "train")


class CacheHarness:
    """An index, and what it asked for."""

    def __init__(self) -> None:
        self.now: list[GangKey] = []
        self.later: list[tuple[GangKey, float]] = []
        self.delivered: set[tuple[GangKey, str]] = set()
        self.index = GangCache(self.now.append, lambda key, seconds: self.later.append((key, seconds)), self.delivered)

    def asked(self) -> tuple[int, int]:
        """How often at once and how often later since the last time this was requested."""
        found = len(self.now), len(self.later)
        self.now.clear()
        self.later.clear()
        return found

    def jobset(self, old: WorkloadSeen | None, new: WorkloadSeen | None) -> None:
        self.index.on_workload(ObjectChange(("default", "train"), old, new))

    def job(self, old: JobSeen | None, new: JobSeen | None) -> None:
        self.index.on_job(ObjectChange(("default", (new or old or job()).name), old, new))

    def pod(self, old: PodSeen | None, new: PodSeen | None) -> None:
        self.index.on_pod(ObjectChange(("default", (new or old or pod()).name), old, new))

    def gate(self, old: ConfigMapSeen | None, new: ConfigMapSeen | None) -> None:
        self.index.on_config_map(ObjectChange(("default", "train-group-scheduling"), old, new))


@pytest.fixture
def woken() -> CacheHarness:
    made = CacheHarness()
    made.jobset(None, jobset())
    made.asked()
    return made


def snapshot(woken: CacheHarness) -> GangSnapshot:
    seen = woken.index.snapshot(TRAIN)
    assert seen is not None
    return seen


# --- Joining --------------------------------------------------------------------------------------------------------


def test_a_gang_is_put_together_from_its_parts_in_any_order() -> None:
    made = CacheHarness()
    made.pod(None, pod(1))
    made.gate(None, config_map())
    made.job(None, job())
    assert made.index.snapshot(TRAIN) is None
    made.jobset(None, jobset())
    seen = snapshot(made)
    assert (seen.workload, seen.jobs, seen.pods, seen.config_map) == (jobset(), (job(),), (pod(1),), config_map())
    assert (list(made.index.keys()), made.index.last_workload(TRAIN)) == ([TRAIN], jobset())


def test_a_gang_without_any_object_takes_no_memory(woken: CacheHarness) -> None:
    woken.job(None, job())
    woken.pod(None, pod(0))
    woken.gate(None, config_map())
    woken.jobset(jobset(), None)
    assert woken.index.snapshot(TRAIN) is None
    assert len(woken.index) == 1
    woken.gate(config_map(), None)
    woken.pod(pod(0), None)
    woken.job(job(), None)
    assert len(woken.index) == 0


@pytest.mark.parametrize("uid", ["pod-0", "another pod of that name"])
def test_who_is_moved_to_another_gang_counts_in_the_old_one_no_more(woken: CacheHarness, uid: str) -> None:
    """By an edit of its label; or its name is another pod's by now, and no watch has shown the first one's end."""
    first, made = pod(0, uid="pod-0"), job()
    woken.job(None, made)
    woken.pod(None, first)
    woken.pod(first, msgspec.structs.replace(first, gang="other", uid=uid))
    woken.job(made, msgspec.structs.replace(made, gang="other"))
    seen = snapshot(woken)
    assert (seen.pods, seen.jobs) == ((), ())
    assert TRAIN in woken.now
    woken.jobset(jobset(), None)
    assert len(woken.index) == 1, "only the other gang is left"


# --- Waking ---------------------------------------------------------------------------------------------------------


def test_a_gang_that_lacks_three_is_woken_by_the_third_start(woken: CacheHarness) -> None:
    woken.index.snapshot(TRAIN)
    woken.index.set_missing_count(TRAIN, 3)
    for index in range(2):
        woken.pod(waiting_pod(index), pod(index))
        assert woken.asked() == (0, 1), "later"
    woken.pod(waiting_pod(2), pod(2))
    assert woken.asked() == (1, 0), "at once"


def test_a_start_that_came_while_the_pass_was_under_way_is_not_lost(woken: CacheHarness) -> None:
    """The pass counted before it; what it found to be lacking is there already."""
    woken.index.set_missing_count(TRAIN, 5)
    woken.index.snapshot(TRAIN)
    woken.pod(waiting_pod(0), pod(0))
    woken.asked()
    woken.index.set_missing_count(TRAIN, 1)
    assert woken.asked() == (1, 0)


def decided(woken: CacheHarness) -> None:
    """The gang has a verdict, and its last pass found nothing lacking."""
    woken.index.set_config_map(TRAIN, config_map(verdict=verdict()))
    woken.index.set_missing_count(TRAIN, 0)


@pytest.mark.parametrize("how", ["delivered", "patched", "passed", "waits"])
def test_only_the_late_report_of_a_pod_that_does_not_know_the_verdict_hurries(woken: CacheHarness, how: str) -> None:
    """After a release by stream each of ten thousand pods has one: a pass over them all each time would be a storm."""
    decided(woken)
    woken.delivered |= {(TRAIN, pod(0).uid)} if how == "delivered" else set()
    reported = {"patched": pod(0, verdict=verdict_codec.render(verdict())), "passed": pod(0, stage=BarrierStage.PASSED)}
    woken.pod(waiting_pod(0), reported.get(how, pod(0)))
    assert (woken.now, woken.later) == ([], [(TRAIN, LATE_POD_DELAY if how == "waits" else PROGRESS_DELAY)])


def test_a_pod_that_the_verdict_does_not_bind_wakes_its_gang_at_once_even_if_it_was_delivered_one(
    woken: CacheHarness,
) -> None:
    """It may be the one that completes the next generation."""
    decided(woken)
    woken.delivered.add((TRAIN, pod(0).uid))
    woken.pod(waiting_pod(0, epoch=1), pod(0, epoch=1))
    assert woken.asked() == (1, 0)


@pytest.mark.parametrize(
    ("old", "new", "starts"),
    [
        (pod(0), pod(0, stage=BarrierStage.PASSED), False),
        (pod(0), pod(0, verdict="release"), False),
        (waiting_pod(0), waiting_pod(0, detail="no gpu"), False),
        (None, waiting_pod(0), False),
        (pod(0), None, False),
        (pod(0), pod(0, deleting=True), False),
        (pod(0), pod(0, uid="another"), True),  # replaced under its name, and only the replacement was seen
    ],
)
def test_what_is_no_start_is_looked_at_later(
    woken: CacheHarness, old: PodSeen | None, new: PodSeen | None, starts: bool
) -> None:
    woken.index.set_missing_count(TRAIN, 1)
    woken.pod(old, new)
    assert woken.asked() == ((1, 0) if starts else (0, 1))


def test_a_change_that_changes_nothing_for_us_wakes_nobody(woken: CacheHarness) -> None:
    woken.pod(None, pod(0))
    woken.job(None, job())
    woken.gate(None, config_map())
    woken.asked()
    woken.pod(pod(0), pod(0))
    woken.job(job(), job())
    woken.jobset(jobset(), jobset())
    woken.gate(config_map(), config_map())
    assert woken.asked() == (0, 0)


def test_jobsets_jobs_and_gates_wake_their_gang_at_once(woken: CacheHarness) -> None:
    woken.jobset(jobset(), jobset(suspended=True))
    woken.job(None, job())
    woken.job(job(), job(suspended=True))
    woken.job(job(suspended=True), None)
    woken.gate(None, config_map())
    woken.gate(config_map(), None)
    assert woken.asked() == (6, 0)


def test_an_announcement_that_ends_is_looked_at_later(woken: CacheHarness) -> None:
    woken.pod(None, waiting_pod(0))
    woken.index.set_missing_count(TRAIN, 2)
    woken.asked()
    woken.index.add_announced(TRAIN, waiting_pod(0).uid, 1.0)
    assert woken.asked() == (0, 1)
    woken.index.set_missing_count(TRAIN, 2)
    woken.pod(waiting_pod(0), pod(0))
    assert woken.asked() == (0, 1), "the status that confirms it is no second start"
    woken.pod(pod(0), waiting_pod(0))
    woken.asked()
    woken.index.remove_announced(TRAIN, waiting_pod(0).uid)
    assert woken.asked() == (0, 1)
    woken.index.remove_announced(TRAIN, waiting_pod(0).uid)
    assert woken.asked() == (0, 0)


# --- Gates ----------------------------------------------------------------------------------------------------------


def test_the_end_of_an_earlier_gate_does_not_end_the_present_one(woken: CacheHarness) -> None:
    ours = config_map(uid="cm-2", resource_version="20")
    woken.index.set_config_map(TRAIN, ours)
    woken.gate(config_map(uid="cm-1"), None)
    assert snapshot(woken).config_map == ours


def test_a_verdict_is_remembered_beyond_its_configmap(woken: CacheHarness) -> None:
    woken.jobset(None, jobset())
    decided = config_map(verdict=verdict())
    woken.index.set_config_map(TRAIN, decided)
    woken.gate(decided, None)
    seen = snapshot(woken)
    assert (seen.config_map, seen.remembered) == (None, verdict())


def test_an_unrelated_configmap_is_remembered_until_ours_is_seen(woken: CacheHarness) -> None:
    woken.index.set_config_map_conflict(TRAIN)
    assert snapshot(woken).config_map_conflict
    woken.index.set_config_map(TRAIN, None)
    assert not snapshot(woken).config_map_conflict
    woken.index.set_config_map_conflict(TRAIN)
    woken.jobset(jobset(), msgspec.structs.replace(jobset(), uid="u-2"))
    assert not snapshot(woken).config_map_conflict, "another life of the JobSet looks for itself"


@pytest.mark.parametrize(("attempt", "epoch"), [(1, 0), (0, 1)])
def test_a_verdict_of_a_generation_that_has_not_begun_is_remembered_when_it_has(
    woken: CacheHarness, attempt: int, epoch: int
) -> None:
    early = verdict(attempt=attempt, epoch=epoch)
    woken.index.set_config_map(TRAIN, config_map(verdict=early))
    assert woken.index.get_verdict(TRAIN) is None
    woken.jobset(jobset(), jobset(replicated_job(epoch=epoch), attempt=attempt))
    assert woken.index.get_verdict(TRAIN) == early


# --- Gangs whose pods are gated one by one ---------------------------------------------------------------------------


def show(woken: CacheHarness, *bodies: Json) -> None:
    for body in bodies:
        seen = read_member(body)
        woken.index.on_pod(ObjectChange((SPACE, seen.name), None, seen))


def test_a_pod_that_comes_late_to_a_later_attempt_is_answered_soon(woken: CacheHarness) -> None:
    """Nothing marks it with that attempt."""
    show(woken, member("a", PASSED))
    meta = {"name": NAME, "namespace": SPACE, "uid": "cm", "labels": {"jobset-gate.dev/gate": "true"}}
    data = {"attempt": "2", "members": "a", "verdict": f"release {OWNER} 2 0 AllPodsStarted\n"}
    seen = read_config_map({"metadata": meta, "data": data})
    woken.index.on_config_map(ObjectChange((SPACE, NAME), None, seen))
    woken.index.snapshot(RING)
    woken.asked()
    show(woken, member("b", RUNS), member("c", RUNS, notes=addressed("c", 2)))
    assert (woken.now, woken.later) == ([], [(RING, LATE_POD_DELAY), (RING, PROGRESS_DELAY)])
