"""The gangs: JobSets as the webhook would have them stored, equal in everything but the way they learn the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bench.release import floor
from bench.release.methods import FLOOR, ReleaseMethod
from jobset_gate import names
from jobset_gate.injection import inject
from jobset_gate.settings import Barrier, Settings
from jobset_gate_demo.fake import manifests

Json = dict[str, Any]

MAIN: Final = "main"
WORKERS: Final = "workers"
ABSENT: Final = "absent"
HOSTNAME: Final = "kubernetes.io/hostname"
# One line at once, then it stays, as a training process would: an exit would keep the kubelet busy in the window.
COMMAND: Final = ("sh", "-c", "echo started; exec sleep 3600")


@dataclass(frozen=True, slots=True)
class Rendering:
    """What the webhook would have been set up with."""

    image: str
    """Of the barrier and of the main containers."""
    stream_url: str

    def settings(self, way: ReleaseMethod) -> Settings:
        return Settings(barrier=Barrier(image=self.image, stream_url=self.stream_url if way.stream else None))


def of(
    way: ReleaseMethod, rendering: Rendering, *, name: str, pods: int, node: str, token: str, absent: bool = False
) -> Json:
    """A gang of so many pods on one node. `absent`: one pod more that no node will have, so that the gang waits."""
    workers = _job(WORKERS, pods, {HOSTNAME: node}, rendering.image)
    jobs = [workers, _job(ABSENT, 1, {HOSTNAME: f"no-{node}"}, rendering.image)] if absent else [workers]
    made = rendered(way, rendering, name=name, jobs=jobs, token=token)
    # A folder of its own also if a gang of this name was there before: its files would count.
    return floor.lowered(made, pods=pods + absent, folder=f"{name}-{token}") if way is FLOOR else made


def rendered(
    way: ReleaseMethod,
    rendering: Rendering,
    *,
    name: str,
    jobs: list[Json],
    token: str,
    annotations: Mapping[str, str] | None = None,
) -> Json:
    """As the webhook would have it stored. It waits for ever; the config stands in the annotation, on every CRD."""
    notes = {names.CONFIG: "{}", **(annotations or {})}
    # No Service per JobSet: nobody looks these pods up.
    jobset = manifests.jobset(
        name, way.namespace, replicated_jobs=jobs, annotations=notes, network={"enableDNSHostnames": False}
    )
    return inject.injected(jobset, None, settings=rendering.settings(way), token=token).document


def _job(name: str, pods: int, where: Mapping[str, str], image: str) -> Json:
    return job(
        name, pods, where, manifests.container(MAIN, image, command=list(COMMAND), imagePullPolicy="IfNotPresent")
    )


def job(name: str, pods: int, where: Mapping[str, str], container: Json) -> Json:
    """A replicatedJob of so many pods on the nodes with these labels."""
    pod = {
        "nodeSelector": dict(where),
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
    }
    return manifests.replicated_job(name, parallelism=pods, containers=[container], pod=pod)
