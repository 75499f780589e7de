"""`demo --serve`: the embedded cluster stays, with five gangs in different states, a kubeconfig and the status page."""

import asyncio
import shlex
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from controllers.barrier import crd_patcher
from controllers.manager import Manager, ManagerOptions
from jobset_gate import names
from jobset_gate.cli.logs import configure
from jobset_gate.cli.options import LogFormat, LogLevel
from jobset_gate.cli.serve import process
from jobset_gate.kube.resources import JOBSETS
from jobset_gate.settings import Settings
from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.apiserver.writes import TOKEN
from jobset_gate_demo.fake.cluster import embedded_cluster
from jobset_gate_demo.fake.kubelet import FakeNode, PodFault, PodMatch
from jobset_gate_demo.frame import NAMESPACE, Display, Json, environment

WAITING, RELEASED, TIMED_OUT, COMPLETED, SUSPENDED = "waiting", "released", "timed-out", "completed", "suspended"
"""The gangs are called what they are."""
GANGS: Final = (
    (WAITING, "9 pods: two find no node, one cannot pull an image; it waits for 12 hours"),
    (RELEASED, "12 pods, which start together when the last of them is there"),
    (TIMED_OUT, "4 pods: one found no node, so all fail after 3 s"),
    (COMPLETED, "4 pods, which start together and work for 4 s"),
    (SUSPENDED, "8 pods, which are created when it is resumed"),
)

_NODES: Final = tuple(FakeNode(f"gpu-{number}", pods=16) for number in range(3))
_POD: Final = {"restartPolicy": "Never"}
_GPU: Final = "nvidia.com/gpu"
_PRICES: Final = {_GPU: 2.5}
_NO_GPU: Final = f"0/3 nodes are available: 3 Insufficient {_GPU}."
_FETCH: Final = "fetch-data"
_PATIENT: Final = 12 * 3600
_IMPATIENT: Final = 3
"""Seconds that gangs wait."""
_WORK_SECONDS: Final = 4.0
"""How long the main containers of the completed gang run."""


def _faults() -> Iterator[PodFault]:
    """Why pods do not start, or late, and when those of the completed gang end."""
    for index in (1, 3):
        yield PodFault(_workers(WAITING, 1, index), unschedulable=_NO_GPU)
    yield PodFault(_workers(WAITING, 0, 2), image_pull_backoff=_FETCH)
    yield PodFault(_workers(TIMED_OUT, 0, 3), unschedulable=_NO_GPU)
    yield PodFault(_workers(RELEASED, 1), slow_start=2.0)
    yield PodFault(_workers(RELEASED, 2), slow_start=5.0)
    yield PodFault(_workers(COMPLETED), main_seconds=_WORK_SECONDS)


def _workers(gang: str, job: int | None = None, index: int | None = None) -> PodMatch:
    return PodMatch(f"{gang}-*", replicated_job="workers", job_index=job, index=index)


def _jobsets() -> Iterator[Json]:
    """The gangs, in their order."""
    driver = manifests.replicated_job("driver", pod=_POD)
    yield _jobset(WAITING, 2, driver)
    yield _jobset(RELEASED, 3)
    yield _jobset(TIMED_OUT, 1, timeout=_IMPATIENT)
    yield _jobset(COMPLETED, 1)
    yield _jobset(SUSPENDED, 2, suspend=True)


def _jobset(name: str, jobs: int, *others: Json, timeout: int = _PATIENT, **spec: Any) -> Json:
    """Jobs of four workers with accelerators, which fetch their data first, and others."""
    fetch = manifests.container(_FETCH, "registry.example/fetch-data:v7")
    main = manifests.container("main", "registry.example/train:v7", resources={"limits": {_GPU: "8"}})
    workers = manifests.replicated_job(
        replicas=jobs, parallelism=4, pod=_POD, init_containers=[fetch], containers=[main]
    )
    config = {names.TIMEOUT_FIELD: timeout}
    return manifests.jobset(name, NAMESPACE, replicated_jobs=[*others, workers], config=config, **spec)


async def serve() -> None:
    """Serves until cancelled; then no port stays open and the kubeconfig is gone. Raises what ends the controller."""
    configure(LogFormat.AUTO, LogLevel.ERROR)
    process.raise_open_files_limit()  # both ends of every barrier's request are in this process
    async with environment(embedded_cluster(nodes=_NODES)) as demo:
        for fault in _faults():
            demo.cluster.kubelets.inject_fault(fault)
        with _kubeconfig(demo.cluster.access.server) as path:
            await crd_patcher.extend_crd(demo.client)
            managers: list[Manager] = []

            async def ready(manager: Manager) -> None:
                managers.append(manager)
                await manager.streaming.wait()
                if manager.page is not None:
                    await manager.page.listening.wait()

            options = ManagerOptions(
                namespace=NAMESPACE, identity="demo", port=0, stream_port=0, page_port=_free_port(), page_prices=_PRICES
            )
            await demo.start_jobset_gate(options, Settings(), ready)
            demo.stop_cluster_first()
            for jobset in _jobsets():
                await demo.client.create(JOBSETS, jobset, NAMESPACE)
            _print_opening(Display(sys.stdout), path, managers[0])
            await demo.tasks.until(asyncio.Event().wait())


def _print_opening(display: Display, kubeconfig: Path, manager: Manager) -> None:
    page = manager.page.url if manager.page is not None else ""
    width = max(len(name) for name, _ in GANGS)
    for line in (
        "A cluster in this process, on 127.0.0.1 only. Webhook and controller are what runs in a cluster; API server,",
        "JobSet and Job controllers, scheduler and kubelets are stand-ins. Five gangs, there in a few seconds:",
        "",
        *(f"  {name:{width}}  {text}" for name, text in GANGS),
        "",
        "In another terminal:",
        "",
        f"  export KUBECONFIG={shlex.quote(str(kubeconfig))}",
        "  jobset-gate get gangs",
        f"  jobset-gate why {WAITING}",
        f"  jobset-gate timeline {RELEASED}",
        f"  jobset-gate watch {WAITING}",
        "",
        f"The status page: {page} (token: {TOKEN})",
        "",
        "kubectl needs more of an API server than this one has. Ctrl-C ends everything.",
    ):
        display.say(line)


@contextmanager
def _kubeconfig(server: str) -> Iterator[Path]:
    """The file while it is there, for its owner only."""
    name = "jobset-gate-demo"
    known = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": NAMESPACE}}],
        "current-context": name,
    }
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        path = Path(folder) / "kubeconfig"
        path.touch(mode=0o600)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(known)))  # JSON is YAML
        yield path


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
