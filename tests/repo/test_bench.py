"""What the benchmarks compute and print; `.ci/run` runs a tenth of each."""

import msgspec
import pytest

from bench import decode
from bench.groups.request_counts import count_requests
from bench.release import timestamps
from bench.release.timestamps import IncompleteLogs
from jobset_gate.barrier import decode as read
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import BarrierStage, PendingReason
from jobset_gate.runtime.decoder import WatchEvent
from tests.plane.audit import AuditedRequest


def test_the_lines_hold_pods_of_all_steps_as_the_rules_read_them() -> None:
    """A benchmark that decodes nothing would be fast."""
    decoder = msgspec.json.Decoder(WatchEvent[wire.Pod])
    pods = [read.pod(decoder.decode(line).object) for line in decode.corpus("any", 100, lean=False).lines]
    assert {pod.stage for pod in pods} == {BarrierStage.WAITING, BarrierStage.RUNNING, BarrierStage.PASSED}
    assert {pod.pending.reason for pod in pods if pod.pending} == {PendingReason.UNSCHEDULED, PendingReason.STARTING}
    assert len({(pod.job_index, pod.index) for pod in pods}) == 100
    assert all(pod.gang and pod.jobset_uid and pod.job_uid for pod in pods)


def request(verb: str, resource: str, name: str, code: int = 200) -> AuditedRequest:
    return AuditedRequest(verb, "", resource, "run", name, code, "/")


def test_writes_are_counted_by_pod_and_by_group() -> None:
    patched = ["g0-0", "g0-1", "g1-0", "g1-0"]
    found = count_requests(
        [
            request("list", "pods", ""),
            request("patch", "podgroups", "g0"),
            request("patch", "podgroups", "g1", 409),
            request("patch", "podgroups", "g1"),
            *(request("patch", "pods", pod) for pod in patched),
            request("patch", "podgroups", "g0"),
            request("patch", "podgroups/status", "g0"),
        ],
        pods=4,
        groups=["g0", "g1"],
    )
    assert (found.patches_per_pod, found.most_patches_of_a_pod) == (1.0, 2)
    assert (found.decisions_per_group, found.most_decisions_of_a_group) == (1.0, 1)
    assert (found.writes_per_group, found.refused) == (2.0, 1)


# --- Releases ---------------------------------------------------------------------------------------------------------


LOGS = """\
[pod/gang-workers-0-0-a/group-scheduling-init] 2026-11-21T13:19:44.000000001Z waiting for the gang to start
[pod/gang-workers-0-0-a/group-scheduling-init] 2026-11-21T13:19:46.5Z released
[pod/gang-workers-0-0-a/main] 2026-11-21T13:19:47.000000003Z started
[pod/gang-workers-0-1-b/group-scheduling-init] 2026-11-21T14:19:45.000000002+01:00 waiting for the gang to start
[pod/gang-workers-0-1-b/main] 2026-11-21T13:19:46.750000002Z started
failed to say more
"""


def test_moments_are_first_lines_to_the_nanosecond_whatever_the_time_zone() -> None:
    found = timestamps.of_gang(timestamps.lines_of(LOGS), barrier="group-scheduling-init", main="main", pods=2)
    assert found.starts[1] - found.starts[0] == 1_000_000_001
    assert [main - found.starts[1] for main in found.mains] == [1_750_000_000, 2_000_000_001]
    assert (found.after, found.gathering, found.released) == ((1.75, 2.000000001), 1.000000001, 1.499999998)
    for gone in ("gang-workers-0-1-b/main", "gang-workers-0-0-a/group-scheduling-init"):
        text = "\n".join(line for line in LOGS.splitlines() if gone not in line)
        with pytest.raises(IncompleteLogs, match="of 2 have written"):
            timestamps.of_gang(timestamps.lines_of(text), barrier="group-scheduling-init", main="main", pods=2)
