"""What the pods of each example tell the rendezvous, for it to be the meeting that the example's own program holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

PORT: Final = 29500
MEETING: Final = f"join $HOST {PORT}"
"""Pods of groups have no names in DNS: they meet in a pod of the suite's."""
ALONE: Final = f"meet localhost {PORT} 0 1"
"""Of those who wait for nobody."""


@dataclass(frozen=True, slots=True)
class ExampleProgram:
    """`commands` and `pods_per_job` as in overlays.py."""

    commands: Mapping[str, str]
    pods_per_job: int | None = None
    secret: str = ""
    """One that the example says to make first."""
    minimum: int | None = None
    """What its group cannot do without, where that is not all of it."""


def _all_meet(jobset: str, jobs: int, pods: int) -> str:
    """The meeting of an example that has none of its own."""
    rank = f"$((JOB_INDEX * {pods} + JOB_COMPLETION_INDEX))"
    return f"meet {jobset}-workers-0-0.{jobset} {PORT} {rank} {jobs * pods}"


JOBSETS: Final = {
    "pytorch.yaml": ExampleProgram({"workers": "meet $MASTER_ADDR $MASTER_PORT $JOB_COMPLETION_INDEX $NODES"}),
    "jax.yaml": ExampleProgram(
        {"workers": "meet $COORDINATOR 1234 $((JOB_INDEX * PODS_PER_JOB + JOB_COMPLETION_INDEX)) $PROCESSES"}
    ),
    "mpi.yaml": ExampleProgram(
        {"launcher": "call $OMPI_MCA_orte_default_hostfile 2222", "workers": "answer 2222"}, secret="mpi-ssh"
    ),
    "first-gang.yaml": ExampleProgram({"workers": _all_meet("first-gang", 2, 2), "auxiliary": ALONE}),
    "story-1.yaml": ExampleProgram({"workers": _all_meet("my-jobset", 3, 2)}, pods_per_job=2),
    "story-2.yaml": ExampleProgram({"workers": _all_meet("my-jobset", 3, 2), "auxiliary": ALONE}, pods_per_job=2),
}
KUEUE: Final = {"kueue.yaml": ExampleProgram({"workers": "meet $MASTER_ADDR $MASTER_PORT $RANK $WORLD_SIZE"})}
JOBS: Final = {"job.yaml": ExampleProgram({"ring": MEETING})}
START_GROUPS: Final = {"start-group.yaml": ExampleProgram({"ring": f"meet ring-0.ring {PORT} ${{HOSTNAME##*-}} 4"})}
GROUPS: Final = {
    "groups/alibaba.yaml": ExampleProgram({"job-a": MEETING}),
    "groups/kep-24.yaml": ExampleProgram({"solver-master": MEETING, "solver-workers": MEETING}),
    "groups/koordinator-annotations.yaml": ExampleProgram({"gang-c": MEETING}),
    "groups/koordinator-podgroup.yaml": ExampleProgram({"gang-a": MEETING, "gang-b": MEETING}),
    "groups/scheduler-plugins.yaml": ExampleProgram({"ring": MEETING}, minimum=4),
    "groups/with-start-barrier.yaml": ExampleProgram({"workers": MEETING}),
}
ALL: Final = {**JOBSETS, **KUEUE, **JOBS, **START_GROUPS, **GROUPS}
