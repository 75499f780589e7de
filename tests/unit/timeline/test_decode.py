"""Statuses and Events as they come from an API server, turned into times; what they no longer tell is lost."""

from typing import Any

import msgspec
import pytest

from jobset_gate.barrier import wire
from jobset_gate.barrier.model import Generation
from jobset_gate.timeline import decode
from jobset_gate.timeline.model import PodTimeline, Step
from tests.fakes.wire_objects import BARRIER, JOB_UID, TEN_O_CLOCK, bare_job_pod, ended, pod, status

RUNS = "2026-08-01T10:00:30Z"
PASSED = status(BARRIER, exit=0)


def read(body: dict[str, Any], pulls: dict[str, float] | None = None) -> PodTimeline:
    return decode.decode_pod(msgspec.json.decode(msgspec.json.encode(body), type=wire.MemberPod), pulls)


def mains(*found: Any, phase: str = "Running", init: Any = PASSED) -> dict[str, Any]:
    body = pod(init)
    body["status"] |= {"containerStatuses": list(found), "phase": phase}
    return body


def seconds(it: PodTimeline) -> dict[str, float]:
    return {str(step): at - TEN_O_CLOCK for step, at in it.times.items()}


def test_a_pod_at_the_gate_of_a_jobset_and_of_a_job() -> None:
    it = read(pod(status(BARRIER, running=RUNS)))
    assert seconds(it) == {"created": 0, "scheduled": 5, "started": 30}
    assert (it.slot, it.node, it.alive) == ("workers-2/17", "node-7", True)
    assert it.generation == Generation("jobset-uid", 1, 3)
    assert it.unknown_steps == {Step.PULLED}
    it = read(bare_job_pod(5, status(BARRIER, running=RUNS)))
    assert (it.slot, it.generation) == ("5", Generation(JOB_UID, 0, 2))


def test_a_pod_that_runs_with_all_its_events() -> None:
    pulls = {BARRIER: TEN_O_CLOCK + 29, "pytorch": TEN_O_CLOCK + 44}
    it = read(mains(status("pytorch", running="2026-08-01T10:00:45Z")), pulls)
    assert seconds(it) == {
        "created": 0, "scheduled": 5, "pulled": 29, "started": 30, "released": 40, "mainPulled": 44, "running": 45,
    }  # fmt: skip
    assert (it.unknown_steps, it.gave_up, it.ended) == (frozenset(), None, None)


def test_the_images_are_there_when_that_of_every_container_is() -> None:
    body = mains(status("pytorch", running="2026-08-01T10:00:45Z"))
    body["spec"]["containers"].append({"name": "sidecar", "image": "log:1"})
    assert Step.MAIN_PULLED in read(body, {"pytorch": TEN_O_CLOCK + 44}).unknown_steps
    both = read(body, {"pytorch": TEN_O_CLOCK + 44, "sidecar": TEN_O_CLOCK + 46})
    assert seconds(both)["mainPulled"] == 46


AGAIN = status("pytorch", running="2026-08-01T11:00:00Z", last=ended(1))


@pytest.mark.parametrize(
    ("found", "running"),
    [
        ([status("b", running="2026-08-01T10:00:47Z"), status("a", running="2026-08-01T10:00:45Z")], 45),
        ([AGAIN | {"restartCount": 1}], 30),
        ([AGAIN], None),
    ],
    ids=["of several containers", "of one that was started again", "of one whose first run is lost"],
)
def test_the_first_run_of_the_first_main_container_counts(found: list[Any], running: float | None) -> None:
    it = read(mains(*found))
    assert (seconds(it).get("running"), Step.RUNNING in it.unknown_steps) == (running, running is None)


def test_a_pod_that_gave_up_at_the_gate_and_one_that_is_done() -> None:
    it = read(mains(status("pytorch", waiting="PodInitializing"), phase="Failed", init=status(BARRIER, exit=124)))
    assert (it.gave_up, it.alive) == (TEN_O_CLOCK + 40, False)
    assert not it.reached(Step.RELEASED)
    it = read(mains(status("pytorch", exit=0), phase="Succeeded"))
    assert (it.ended, seconds(it)["running"], it.alive) == (TEN_O_CLOCK + 40, 30, True)


def test_a_bound_pod_whose_condition_is_gone_was_scheduled_at_a_time_not_known() -> None:
    body = pod()
    body["status"] = {"phase": "Pending"}
    assert read(body).unknown_steps == {Step.SCHEDULED}
