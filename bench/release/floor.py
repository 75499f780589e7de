"""The floor: the same pods, whose barriers find out without a controller that all have started.

Each barrier leaves a file of its own in a folder on the host and counts those that are there. The last one
writes the verdict into that folder, where all look for it. So nothing lies between the last barrier's start
and the release but the interval at which a barrier looks: no API server, no controller, no kubelet, nobody who would
have to notice.
"""

from __future__ import annotations

from typing import Any, Final

from jobset_gate import names
from jobset_gate.injection import container

Json = dict[str, Any]

FOLDER: Final = "/tmp/bench-release-floor"  # noqa: S108 - on the nodes, one folder per gang in it
MOUNT: Final = "/mnt/floor"
VOLUME: Final = "floor"
POLL_INTERVAL: Final = "JOBSET_GATE_DIR"
"""Where the barrier looks for its verdict."""
PODS: Final = "FLOOR_PODS"
RELEASE: Final = (
    f'echo "release ${names.ENV_UID} ${names.ENV_ATTEMPT} 0 floor" >"${POLL_INTERVAL}/{names.VERDICT_FILE}"'
)
# No process is started for this; then the barrier does what it always does.
SCRIPT: Final = f"""\
: >"${POLL_INTERVAL}/.started-$HOSTNAME"
set -- "${POLL_INTERVAL}"/.started-*
[ $# -lt "${PODS}" ] || {RELEASE}
"""


def script() -> str:
    """What a barrier of the floor runs."""
    return SCRIPT + container.shell_script("barrier.sh")


def lowered(jobset: Json, *, pods: int, folder: str) -> Json:
    """The gated JobSet with the floor's barriers in place of ours, and nothing else changed but the folder they share.

    They run as root, which owns the folder that the kubelet makes; everything else is as in ours.
    """
    jobs = [_job(job, pods, folder) for job in jobset["spec"]["replicatedJobs"]]
    return {**jobset, "spec": {**jobset["spec"], "replicatedJobs": jobs}}


def _job(job: Json, pods: int, folder: str) -> Json:
    job_spec = job["template"]["spec"]
    template = job_spec["template"]
    spec = template["spec"]
    held = [_barrier(one, pods) if one["name"] == names.BARRIER_CONTAINER else one for one in spec["initContainers"]]
    path = {"path": f"{FOLDER}/{folder}", "type": "DirectoryOrCreate"}
    changed = {**spec, "initContainers": held, "volumes": [*spec["volumes"], {"name": VOLUME, "hostPath": path}]}
    return {**job, "template": {**job["template"], "spec": {**job_spec, "template": {**template, "spec": changed}}}}


def _barrier(made: Json, pods: int) -> Json:
    extra = {POLL_INTERVAL: MOUNT, PODS: str(pods)}
    return {
        **made,
        "command": ["sh", "-c", script()],
        "env": [*made["env"], *({"name": key, "value": value} for key, value in extra.items())],
        "volumeMounts": [*made["volumeMounts"], {"name": VOLUME, "mountPath": MOUNT}],
        "securityContext": {**made["securityContext"], "runAsNonRoot": False, "runAsUser": 0, "runAsGroup": 0},
    }
