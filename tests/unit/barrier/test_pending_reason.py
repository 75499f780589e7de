"""Why a pod has not started: reason (A9) and message, from statuses as kubelets write them."""

from typing import Any

import pytest

from jobset_gate.barrier.model import PendingCause, PendingReason
from jobset_gate.barrier.pending_reason import MAX_MESSAGE
from tests.fakes.wire_objects import BARRIER, Json, ended, pod, read_pod, status

NOT_YET = status(BARRIER, waiting="PodInitializing")
BACK_OFF = 'Back-off pulling image "pytorch:2": ErrImagePull: not found'
SCHEDULER = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available."


def stall(*init: Json, **rest: Any) -> PendingCause:
    found = read_pod(pod(*init, **rest)).pending
    assert found is not None
    return found


def unbound(*conditions: Json) -> PendingCause:
    return stall(spec={}, status={"phase": "Pending", "conditions": list(conditions)})


@pytest.mark.parametrize(
    ("init", "why", "detail"),
    [
        ((), PendingReason.STARTING, "its kubelet has not reported a container yet"),
        ((NOT_YET,), PendingReason.STARTING, f"{BARRIER}: PodInitializing"),
        (
            (status(BARRIER, waiting="ContainerCreating"),),
            PendingReason.STARTING,
            f"{BARRIER}: ContainerCreating",
        ),
        (
            (status(BARRIER, waiting="ErrImagePull", message="no such host"),),
            PendingReason.BARRIER_IMAGE_PULL,
            f"{BARRIER}: ErrImagePull: no such host",
        ),
        (
            (status(BARRIER, waiting="ImagePullBackOff", message=BACK_OFF),),
            PendingReason.BARRIER_IMAGE_PULL,
            f"{BARRIER}: ImagePullBackOff: {BACK_OFF}",
        ),
        (
            (status("fetch", waiting="ImagePullBackOff", message=BACK_OFF), NOT_YET),
            PendingReason.IMAGE_PULL,
            f"fetch: ImagePullBackOff: {BACK_OFF}",
        ),
        ((status("fetch", waiting="InvalidImageName"), NOT_YET), PendingReason.IMAGE_PULL, "fetch: InvalidImageName"),
        (
            (status("fetch", running="2026-08-01T10:00:10Z"), NOT_YET),
            PendingReason.EARLIER_INIT,
            "fetch is still running",
        ),
        (
            (status("fetch", exit=0), NOT_YET),
            PendingReason.STARTING,
            "fetch is done, the next container is being created",
        ),
        (
            (status("fetch", exit=2, reason="Error"), NOT_YET),
            PendingReason.CRASH_LOOP,
            "fetch: Error: exit code 2",
        ),
        (
            (status("fetch", waiting="CrashLoopBackOff", last=ended(1, message="no bucket")), NOT_YET),
            PendingReason.CRASH_LOOP,
            "fetch: CrashLoopBackOff: exit code 1: no bucket",
        ),
        (
            (status(BARRIER, waiting="CrashLoopBackOff", last=ended(124, message="timed out")),),
            PendingReason.CRASH_LOOP,
            f"{BARRIER}: CrashLoopBackOff: exit code 124: timed out",
        ),
        (
            (status("proxy", running="2026-08-01T10:00:10Z"), status("fetch", waiting="ImagePullBackOff"), NOT_YET),
            PendingReason.IMAGE_PULL,
            "fetch: ImagePullBackOff",
        ),
        (
            (status("proxy", running="2026-08-01T10:00:10Z"), status(BARRIER, waiting="ErrImageNeverPull")),
            PendingReason.BARRIER_IMAGE_PULL,
            f"{BARRIER}: ErrImageNeverPull",
        ),
        (
            (NOT_YET, status("behind the barrier", waiting="ImagePullBackOff")),
            PendingReason.STARTING,
            f"{BARRIER}: PodInitializing",
        ),
        (
            (status("proxy", running="2026-08-01T10:00:10Z", ready=True), NOT_YET),
            PendingReason.STARTING,
            "proxy is up, the next container is being created",
        ),
        (
            (status("proxy", running="2026-08-01T10:00:10Z"), NOT_YET),
            PendingReason.EARLIER_INIT,
            "proxy is still running",
        ),
        (
            (
                status("proxy", running="2026-08-01T10:00:10Z", ready=True),
                status("fetch", running="2026-08-01T10:00:11Z"),
                NOT_YET,
            ),
            PendingReason.EARLIER_INIT,
            "fetch is still running",
        ),
    ],
)
def test_a_pod_on_its_node_is_held_up_by(init: tuple[Json, ...], why: PendingReason, detail: str) -> None:
    assert stall(*init) == PendingCause(reason=why, message=detail)


COPIER, FIRST, SECOND = (f"group-scheduling-prefetch{end}" for end in ("", "-1", "-2"))
DONE = status(COPIER, exit=0)


@pytest.mark.parametrize(
    ("init", "why", "detail"),
    [
        (
            (status(COPIER, waiting="ImagePullBackOff", message="no busybox"), status(FIRST), NOT_YET),
            PendingReason.BARRIER_IMAGE_PULL,
            f"{COPIER}: ImagePullBackOff: no busybox",
        ),
        (
            (DONE, status(FIRST, waiting="PodInitializing"), NOT_YET),
            PendingReason.IMAGE_PULL,
            f"{FIRST}: the image of a main container is being pulled",
        ),
        (
            (DONE, status(FIRST, exit=0), status(SECOND, waiting="PodInitializing"), NOT_YET),
            PendingReason.IMAGE_PULL,
            f"{SECOND}: the image of a main container is being pulled",
        ),
        (
            (DONE, status(FIRST, exit=0), status(SECOND, waiting="ErrImagePull", message=BACK_OFF), NOT_YET),
            PendingReason.IMAGE_PULL,
            f"{SECOND}: ErrImagePull: {BACK_OFF}",
        ),
        (
            (DONE, status(FIRST, exit=0), NOT_YET, status(SECOND, waiting="PodInitializing")),
            PendingReason.STARTING,
            f"{FIRST} is done, the next container is being created",
        ),
        (
            (DONE, status(FIRST, waiting="PodInitializing"), status("after a reboot", exit=0), NOT_YET),
            PendingReason.STARTING,
            "after a reboot is done, the next container is being created",
        ),
        (
            (status("proxy", running="2026-08-01T10:00:10Z", ready=True), status(COPIER), status(FIRST), NOT_YET),
            PendingReason.STARTING,
            "proxy is up, the next container is being created",
        ),
        (
            (DONE, status(FIRST, waiting="CrashLoopBackOff", last=ended(255, message="exec format error")), NOT_YET),
            PendingReason.CRASH_LOOP,
            f"{FIRST}: CrashLoopBackOff: exit code 255: exec format error",
        ),
        (
            (DONE, status(FIRST, waiting="CreateContainerConfigError", message="image will run as root"), NOT_YET),
            PendingReason.STARTING,
            f"{FIRST}: CreateContainerConfigError: image will run as root",
        ),
    ],
)
def test_while_images_are_prefetched_it_is_held_up_by(init: tuple[Json, ...], why: PendingReason, detail: str) -> None:
    assert stall(*init) == PendingCause(reason=why, message=detail)


def test_a_pod_that_failed_for_an_init_container_says_for_which() -> None:
    """Under restartPolicy Never; the barrier's own end is reported by its verdict."""
    last = {"name": FIRST, "state": {"terminated": ended(255, message="exec format error")}}
    barrier = {"name": BARRIER, "state": {"terminated": ended(124, message="timed out")}}
    found = stall(status={"phase": "Failed", "initContainerStatuses": [DONE, last, NOT_YET]})
    assert found == PendingCause(
        reason=PendingReason.NOT_CREATED, message=f"its pod failed: {FIRST}: Error: exit code 255: exec format error"
    )
    assert stall(status={"phase": "Failed", "initContainerStatuses": [DONE, barrier]}).message == "its pod failed"


def test_a_pod_without_a_node_is_unscheduled_in_the_schedulers_words() -> None:
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": SCHEDULER}
    assert unbound(said) == PendingCause(reason=PendingReason.UNSCHEDULED, message=SCHEDULER)


def test_a_pod_that_a_scheduling_gate_holds_says_so() -> None:
    said = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    assert unbound(said) == PendingCause(reason=PendingReason.UNSCHEDULED, message="SchedulingGated")


@pytest.mark.parametrize("conditions", [(), ({"type": "Initialized", "status": "False"},)])
def test_a_pod_that_no_scheduler_has_seen_says_so(conditions: tuple[Json, ...]) -> None:
    assert unbound(*conditions) == PendingCause(
        reason=PendingReason.UNSCHEDULED, message="no scheduler has looked at it yet"
    )


def test_a_terminating_pod_is_terminating_whatever_else_it_is() -> None:
    found = stall(status("fetch", waiting="ImagePullBackOff"), meta={"deletionTimestamp": "2026-08-01T10:05:00Z"})
    assert found == PendingCause(reason=PendingReason.TERMINATING, message="is being deleted")


def test_a_failed_pod_has_no_successor_yet() -> None:
    failed = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
    found = stall(status=failed)
    assert found.reason is PendingReason.NOT_CREATED
    assert found.message == "its pod failed: Evicted: The node was low on resource: memory."


def test_details_are_one_short_line() -> None:
    found = stall(status("fetch", waiting="ImagePullBackOff", message="a\n  b\t" + "c" * 5000), NOT_YET)
    assert found.message.startswith("fetch: ImagePullBackOff: a b ccc")
    assert len(found.message) == MAX_MESSAGE


def test_a_container_s_last_words_bring_no_control_characters_with_them() -> None:
    """They go to terminals and into the JobSet's condition."""
    evil = "no data\x1b[2J\x1b]0;owned\x07\x9b31m\u202egpj"
    found = stall(status("fetch", waiting="CrashLoopBackOff", last=ended(1, message=evil)), NOT_YET)
    assert found.message.endswith("no data^[[2J^[]0;owned^G\\x9b31m\\u202egpj")
