"""The real control plane: it starts, obeys, and leaves nothing behind."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobset_gate.kube.resources import JOBS, NAMESPACES, PODS
from tests.plane.places import Binaries
from tests.plane.planes import Real, fresh_name
from tests.plane.process import ChildProgramDied
from tests.plane.real import RealPlane

pytestmark = pytest.mark.real

JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "three"},
    "spec": {
        "completionMode": "Indexed",
        "parallelism": 3,
        "completions": 3,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "main"}]}},
    },
}


@pytest.fixture
async def own_namespace(real_plane: Real) -> AsyncIterator[str]:
    name = fresh_name()
    await real_plane.make_namespace(name)
    yield name
    await real_plane.drop_namespace(name)


async def test_the_job_controller_makes_pods(real_plane: Real, own_namespace: str) -> None:
    await real_plane.kubectl("apply", "-n", own_namespace, "-f", "-", stdin=JOB)
    wait = ["wait", "pod", "-n", own_namespace, "-l", "job-name=three", "--timeout=60s"]
    await real_plane.kubectl("wait", "job/three", "-n", own_namespace, "--for=jsonpath={.status.active}=3")
    await real_plane.kubectl(*wait, "--for=jsonpath={.status.phase}=Pending")
    async with real_plane.client() as client:
        pods = await client.list(PODS, own_namespace)
    indexes = sorted(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for pod in pods["items"])
    assert indexes == ["0", "1", "2"]


async def test_a_dropped_namespace_goes_with_its_pods_even_if_nodes_hold_them(real_plane: Real) -> None:
    name = fresh_name()
    await real_plane.make_namespace(name)
    pod = {"metadata": {"name": "held"}, "spec": {"nodeName": "nowhere", "containers": [{"name": "a", "image": "a"}]}}
    async with real_plane.client() as client:
        await client.create(PODS, pod, name)
        await client.create(JOBS, JOB, name)
        await real_plane.drop_namespace(name)
    await real_plane.kubectl("wait", f"namespace/{name}", "--for=delete", "--timeout=60s")


async def test_a_client_that_nobody_knows_is_refused(real_plane: Real, tmp_path: Path) -> None:
    """Authorization is on: what passes in the tests did not pass because nobody asked."""
    stranger = tmp_path / "kubeconfig"
    seen = await real_plane.kubectl("config", "view", "--raw", "-o", "json")
    config = seen.json
    config["users"][0]["user"] = {"token": "unknown"}
    stranger.write_text(json.dumps(config))
    ran = await real_plane.kubectl("get", "pods", f"--kubeconfig={stranger}", check=False)
    assert ran.code != 0
    assert "Unauthorized" in ran.stderr or "logged in" in ran.stderr


async def test_namespaces_are_listed_by_our_own_client(real_plane: Real) -> None:
    async with real_plane.client() as client:
        found = await client.list(NAMESPACES)
    assert {"default", "kube-system"} <= {each["metadata"]["name"] for each in found["items"]}


def test_everything_listens_on_loopback_only(real_plane: Real) -> None:
    """Read from the kernel's table of listening sockets, by the inodes that our processes hold."""
    held = {inode for pid in real_plane.running.pids.values() for inode in _socket_inodes(pid)}
    listening = [line.split() for table in ("tcp", "tcp6") for line in _table(table) if line.split()[3] == "0A"]
    ours = [fields[1].split(":")[0] for fields in listening if fields[9] in held]
    assert len(ours) >= 3
    assert set(ours) == {"0100007F"}


def _table(name: str) -> list[str]:
    path = Path("/proc/net") / name
    return path.read_text().splitlines()[1:] if path.exists() else []


def _socket_inodes(pid: int) -> set[str]:
    links = {str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()}
    return {link.removeprefix("socket:[").rstrip("]") for link in links if link.startswith("socket:[")}


def test_stop_leaves_no_process_and_no_file(control_plane_binaries: Binaries) -> None:
    plane = RealPlane(control_plane_binaries, controllers=False).start()
    pids, folder = list(plane.pids.values()), plane.kubeconfig.parent
    plane.stop()
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
    assert not folder.exists()


def test_a_killed_test_run_takes_the_control_plane_with_it(control_plane_binaries: Binaries) -> None:
    """SIGKILL leaves nobody to tidy up, so the kernel has to."""
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.plane.places import Binaries; from tests.plane.real import RealPlane\n"
        f"plane = RealPlane(Binaries(Path({str(control_plane_binaries.folder)!r}), ''), controllers=False).start()\n"
        "print(*plane.pids.values(), plane.kubeconfig.parent, flush=True); sys.stdin.read()"
    )
    run = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert run.stdout is not None
    assert run.stdin is not None
    *pids, folder = run.stdout.readline().decode().split()
    watched = [os.pidfd_open(int(pid)) for pid in pids]
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdin.close()
    run.stdout.close()
    for each in watched:
        assert select.select([each], [], [], 20)[0], "still alive 20 s after its parent was killed"
        os.close(each)
    shutil.rmtree(folder)


def test_a_program_that_dies_is_reported_with_its_last_words(control_plane_binaries: Binaries, tmp_path: Path) -> None:
    broken = tmp_path / "bin"
    broken.mkdir()
    for program in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"):
        (broken / program).symlink_to(control_plane_binaries[program])
    (broken / "etcd").write_text("#!/bin/sh\necho disk on fire >&2; exit 3\n")
    (broken / "etcd").chmod(0o755)
    with pytest.raises(ChildProgramDied, match=r"etcd ended with code 3:\ndisk on fire"):
        RealPlane(Binaries(broken, "broken")).start()
