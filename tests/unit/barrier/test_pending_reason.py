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


PROXY = status("proxy", running="2026-08-01T10:00:10Z")
PROXY_UP = status("proxy", running="2026-08-01T10:00:10Z", ready=True)
FETCHES = status("fetch", running="2026-08-01T10:00:11Z")
NO_BUCKET = status("fetch", waiting="CrashLoopBackOff", last=ended(1, message="no bucket"))


def pull(name: str, why: str = "ImagePullBackOff", message: str = "") -> Json:
    return status(name, waiting=why, message=message)


@pytest.mark.parametrize(
    ("init", "why", "detail"),
    [
        ((), "Starting", "its kubelet has not reported a container yet"),
        ((NOT_YET,), "Starting", f"{BARRIER}: PodInitializing"),
        ((pull(BARRIER, "ErrImagePull", "no host"),), "BarrierImagePull", f"{BARRIER}: ErrImagePull: no host"),
        ((pull("fetch", message=BACK_OFF), NOT_YET), "ImagePull", f"fetch: ImagePullBackOff: {BACK_OFF}"),
        ((FETCHES, NOT_YET), "EarlierInit", "fetch is still running"),
        ((status("fetch", exit=0), NOT_YET), "Starting", "fetch is done, the next container is being created"),
        ((status("fetch", exit=2, reason="Error"), NOT_YET), "CrashLoop", "fetch: Error: exit code 2"),
        ((NO_BUCKET, NOT_YET), "CrashLoop", "fetch: CrashLoopBackOff: exit code 1: no bucket"),
        ((PROXY, pull(BARRIER, "ErrImageNeverPull")), "BarrierImagePull", f"{BARRIER}: ErrImageNeverPull"),
        ((NOT_YET, pull("behind the barrier")), "Starting", f"{BARRIER}: PodInitializing"),
        ((PROXY_UP, NOT_YET), "Starting", "proxy is up, the next container is being created"),
        ((PROXY, NOT_YET), "EarlierInit", "proxy is still running"),
        ((PROXY_UP, FETCHES, NOT_YET), "EarlierInit", "fetch is still running"),
    ],
)
def test_a_pod_on_its_node_is_held_up_by(init: tuple[Json, ...], why: str, detail: str) -> None:
    assert stall(*init) == PendingCause(reason=PendingReason(why), message=detail)


COPIER, FIRST, SECOND = (f"group-scheduling-prefetch{end}" for end in ("", "-1", "-2"))
DONE, DONE_FIRST = status(COPIER, exit=0), status(FIRST, exit=0)
NEXT = status(FIRST, waiting="PodInitializing")
NO_EXEC = status(FIRST, waiting="CrashLoopBackOff", last=ended(255, message="exec format error"))
PULLED = "the image of a main container is being pulled"


@pytest.mark.parametrize(
    ("init", "why", "detail"),
    [
        ((pull(COPIER, message="no tag"), status(FIRST), NOT_YET), "BarrierImagePull", "{0}: ImagePullBackOff: no tag"),
        ((DONE, NEXT, NOT_YET), "ImagePull", f"{FIRST}: {PULLED}"),
        ((DONE, DONE_FIRST, pull(SECOND, "ErrImagePull", "x"), NOT_YET), "ImagePull", f"{SECOND}: ErrImagePull: x"),
        ((DONE, DONE_FIRST, NOT_YET, pull(SECOND, "")), "Starting", f"{FIRST} is done, {{1}}"),
        ((DONE, NEXT, status("after a reboot", exit=0), NOT_YET), "Starting", "after a reboot is done, {1}"),
        ((PROXY_UP, status(COPIER), status(FIRST), NOT_YET), "Starting", "proxy is up, {1}"),
        ((DONE, NO_EXEC, NOT_YET), "CrashLoop", f"{FIRST}: CrashLoopBackOff: exit code 255: exec format error"),
        ((DONE, pull(FIRST, "CreateContainerConfigError", "root"), NOT_YET), "Starting", f"{FIRST}: {{2}}: root"),
    ],
)
def test_while_images_are_prefetched_it_is_held_up_by(init: tuple[Json, ...], why: str, detail: str) -> None:
    words = detail.format(COPIER, "the next container is being created", "CreateContainerConfigError")
    assert stall(*init) == PendingCause(reason=PendingReason(why), message=words)


def test_a_pod_that_failed_for_an_init_container_says_for_which() -> None:
    """Under restartPolicy Never; the barrier's own end is reported by its verdict."""
    last = {"name": FIRST, "state": {"terminated": ended(255, message="exec format error")}}
    barrier = {"name": BARRIER, "state": {"terminated": ended(124, message="timed out")}}
    found = stall(status={"phase": "Failed", "initContainerStatuses": [DONE, last, NOT_YET]})
    assert found == PendingCause(
        reason=PendingReason.NOT_CREATED, message=f"its pod failed: {FIRST}: Error: exit code 255: exec format error"
    )
    assert stall(status={"phase": "Failed", "initContainerStatuses": [DONE, barrier]}).message == "its pod failed"


REFUSAL = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": SCHEDULER}
UNSEEN = "no scheduler has looked at it yet"


@pytest.mark.parametrize(
    ("conditions", "words"),
    [((REFUSAL,), SCHEDULER), ((), UNSEEN), (({"type": "Initialized", "status": "False"},), UNSEEN)],
)
def test_a_pod_without_a_node_is_unscheduled_in_the_schedulers_words(conditions: tuple[Json, ...], words: str) -> None:
    assert unbound(*conditions) == PendingCause(reason=PendingReason.UNSCHEDULED, message=words)


def test_a_pod_that_a_queue_holds_names_the_gates_of_the_queue() -> None:
    said = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "Scheduling is blocked"}
    held = {"phase": "Pending", "conditions": [said]}
    two = [{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}]
    assert stall(spec={"schedulingGates": two}, status=held) == PendingCause(
        reason=PendingReason.UNSCHEDULED,
        message="waits for its scheduling gates to be removed: kueue.x-k8s.io/admission, kueue.x-k8s.io/topology",
    )
    assert len(stall(spec={"schedulingGates": [{"name": "x" * 10_000}] * 100}, status=held).message) == MAX_MESSAGE
    assert stall(spec={"schedulingGates": []}, status=held).message == "Scheduling is blocked"


def test_a_terminating_pod_is_terminating_whatever_else_it_is() -> None:
    found = stall(status("fetch", waiting="ImagePullBackOff"), meta={"deletionTimestamp": "2026-08-01T10:05:00Z"})
    assert found == PendingCause(reason=PendingReason.TERMINATING, message="is being deleted")


def test_details_are_one_short_line_without_control_characters() -> None:
    found = stall(status("fetch", waiting="ImagePullBackOff", message="a\n  b\t" + "c" * 5000), NOT_YET)
    assert found.message.startswith("fetch: ImagePullBackOff: a b ccc")
    assert len(found.message) == MAX_MESSAGE
    evil = "no data\x1b[2J\x1b]0;owned\x07\x9b31m\u202egpj"
    found = stall(status("fetch", waiting="CrashLoopBackOff", last=ended(1, message=evil)), NOT_YET)
    assert found.message.endswith("no data^[[2J^[]0;owned^G\\x9b31m\\u202egpj")
