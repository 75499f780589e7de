"""The real control plane: it is found or made, one serves all workers, and nothing of it stays behind."""

import asyncio
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobset_gate.kube.resources import PODS
from tests.plane import build, lanes, places, provide, release, versions
from tests.plane.places import Binaries
from tests.plane.planes import Real, fresh_name
from tests.plane.process import ChildProgramDied
from tests.plane.real import RealPlane
from tests.plane.release import DownloadUnreachable, DownloadUrls, WrongSum
from tests.plane.shared import SharedPlanes, attach
from tests.repo.files import ROOT


@pytest.fixture(scope="module")
def shared(control_plane_binaries: Binaries) -> Iterator[SharedPlanes]:
    """Another one than that of the test run."""
    made = SharedPlanes({"bare": {"controllers": False}})
    yield made
    made.stop()


@pytest.mark.real
def test_all_workers_get_the_same_plane_and_nothing_of_it_is_left(shared: SharedPlanes) -> None:
    one, other = (attach(shared.address, "bare") for _ in range(2))
    assert (one.server, one.kubeconfig) == (other.server, other.kubeconfig)
    assert one.admin.request("GET", "/readyz")[0] == 200
    pids, folder = _children("kube-apiserver", one.layout.folder), one.layout.folder
    assert pids
    addresses = {address for pid in pids for address in _listening(pid)}
    assert addresses == {"0100007F"}, "on loopback only"
    shared.stop()
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
    assert not folder.exists()


def _children(program: str, folder: Path) -> list[int]:
    """The processes whose command line names the program and the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:
            continue
        if program.encode() in command and bytes(folder) in command:
            found.append(int(path.parent.name))
    return found


def _listening(pid: int) -> set[str]:
    """Addresses of its listening sockets, from the kernel's table, by the inodes that it holds."""
    links = {str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()}
    inodes = {link.removeprefix("socket:[").rstrip("]") for link in links if link.startswith("socket:[")}
    tables = [path for name in ("tcp", "tcp6") if (path := Path("/proc/net") / name).exists()]
    rows = [line.split() for path in tables for line in path.read_text().splitlines()[1:]]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}


@pytest.mark.real
def test_a_killed_test_run_takes_the_control_plane_with_it(control_plane_binaries: Binaries) -> None:
    """After SIGKILL the kernel alone can end it."""
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.plane.places import Binaries; from tests.plane.real import RealPlane\n"
        f"plane = RealPlane(Binaries(Path({str(control_plane_binaries.folder)!r}), ''), controllers=False).start()\n"
        "print(*plane.pids.values(), plane.kubeconfig.parent, flush=True); sys.stdin.read()"
    )
    run = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)  # noqa: S603
    assert run.stdout is not None
    assert run.stdin is not None
    *pids, folder = run.stdout.readline().decode().split()
    watched = [os.pidfd_open(int(pid)) for pid in pids]
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdin.close()
    run.stdout.close()
    for each in watched:
        assert select.select([each], [], [], 60)[0], "still alive 60 s after its parent was killed"
        os.close(each)
    shutil.rmtree(folder)


@pytest.mark.real
async def test_an_unknown_client_is_refused(real_plane: Real, tmp_path: Path) -> None:
    """Authorization is on: what passes in the tests had the right to."""
    config = (await real_plane.kubectl("config", "view", "--raw", "-o", "json")).json
    config["users"][0]["user"] = {"token": "unknown"}
    unknown = tmp_path / "kubeconfig"
    unknown.write_text(json.dumps(config))
    ran = await real_plane.kubectl("get", "pods", f"--kubeconfig={unknown}", check=False)
    assert ran.code != 0
    assert "Unauthorized" in ran.stderr or "logged in" in ran.stderr


@pytest.mark.real
async def test_a_dropped_namespace_goes_with_its_pods_even_if_nodes_hold_them(real_plane: Real) -> None:
    name = fresh_name()
    await real_plane.make_namespace(name)
    pod = {"metadata": {"name": "held"}, "spec": {"nodeName": "nowhere", "containers": [{"name": "a", "image": "a"}]}}
    async with real_plane.client() as client:
        await client.create(PODS, pod, name)
    await real_plane.drop_namespace(name)
    await real_plane.kubectl("wait", f"namespace/{name}", "--for=delete", "--timeout=60s")


@pytest.mark.real
async def test_a_cancelled_kubectl_is_gone(real_plane: Real) -> None:
    """A watch must not outlive its test."""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(real_plane.kubectl("get", "configmaps", "--watch"), 0.5)
    assert [command for command in _own_children() if "--watch" in command] == []


def _own_children() -> list[str]:
    """Command lines."""
    pids = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return [Path(f"/proc/{pid}/cmdline").read_text() for pid in pids]


# --- Where it comes from ---------------------------------------------------------------------------------------------


def make(folder: Path, version: str = versions.KUBERNETES, without: str = "") -> Path:
    """A folder with programs that know their version."""
    folder.mkdir(parents=True)
    for name in versions.PROGRAMS:
        if name != without:
            (folder / name).write_text(f"#!/bin/sh\necho Kubernetes {version}\n")
            (folder / name).chmod(0o755)
    return folder


def test_what_a_user_names_comes_first_and_what_will_not_do_is_passed_over_with_the_reason(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(make(tmp_path / "assets", "v1.2.3"))}
    assert isinstance(found := places.find(env), Binaries)
    assert found.folder == tmp_path / "assets", "a user's choice may be of any version"
    (tmp_path / "assets" / "kube-controller-manager").unlink()
    make(places.own_folder(env), "v1.2.3")
    rejected = places.find(env)
    assert not isinstance(rejected, Binaries)
    assert [it.why for it in rejected[:2]] == [
        "kube-controller-manager not there",
        f"it is v1.2.3, the tests want {versions.KUBERNETES}",
    ]


def test_what_cannot_be_downloaded_is_built_once_and_a_failed_build_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"HOME": str(tmp_path)}

    def refused(*_: object) -> None:
        raise DownloadUnreachable("no network")

    def fails(into: Path, *_: object) -> str:
        (into / "half").touch()
        raise build.BuildFailed("no")

    def works(into: Path, *_: object) -> str:
        into.rmdir()
        make(into)
        return "1.99"

    monkeypatch.setattr(release, "download", refused)
    monkeypatch.setattr(build, "build", fails)
    with pytest.raises(build.BuildFailed):
        provide.provide(env)
    assert [it.name for it in places.own_folder(env).parent.iterdir()] == [f".{versions.KUBERNETES}.lock"]
    monkeypatch.setattr(build, "build", works)
    first = provide.provide(env)
    assert first.origin == f"built with Go 1.99, {versions.KUBERNETES}"
    monkeypatch.setattr(build, "build", fails)
    assert provide.provide(env).folder == first.folder


def test_a_download_that_is_not_what_was_published_is_refused(tmp_path: Path) -> None:
    files = tmp_path / "kubernetes" / versions.KUBERNETES / "bin" / "linux" / release.architecture()
    files.mkdir(parents=True)
    for name in versions.PROGRAMS:
        (files / name).write_text("something else")
        (files / f"{name}.sha256").write_text("0" * 64)
    etcd = tmp_path / "etcd" / versions.ETCD
    etcd.mkdir(parents=True)
    archive = f"etcd-{versions.ETCD}-linux-{release.architecture()}.tar.gz"
    (etcd / "SHA256SUMS").write_text(f"{'0' * 64}  {archive}\n")
    into = tmp_path / "into"
    into.mkdir()
    urls = DownloadUrls(f"file://{tmp_path}/kubernetes", f"file://{tmp_path}/etcd")
    with pytest.raises(WrongSum, match="not used"):
        release.download(into, lambda _: None, urls)


def test_the_go_module_requires_the_versions_that_are_promised() -> None:
    text = (ROOT / "tests" / "plane" / "gomod" / "go.mod").read_text()
    assert f"k8s.io/kubernetes {versions.KUBERNETES}\n" in text
    assert f"go.etcd.io/etcd/server/v3 {versions.ETCD}\n" in text


def test_a_real_plane_that_cannot_start_says_why(tmp_path: Path, control_plane_binaries: Binaries) -> None:
    broken = make(tmp_path / "bin", without="etcd")
    (broken / "etcd").write_text("#!/bin/sh\necho disk on fire >&2; exit 3\n")
    (broken / "etcd").chmod(0o755)
    (broken / "kube-apiserver").unlink()
    (broken / "kube-apiserver").symlink_to(control_plane_binaries["kube-apiserver"])
    with pytest.raises(ChildProgramDied, match=r"etcd ended with code 3:\ndisk on fire"):
        RealPlane(Binaries(broken, "broken")).start()


def test_every_lane_names_tests_that_exist() -> None:
    paths = [path for some in (*lanes.LANES.values(), lanes.FIRST, lanes.BY_FILE) for path in some]
    assert [path for path in paths if not list(ROOT.glob(f"{path.rstrip('/')}*"))] == []
