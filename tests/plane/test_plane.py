"""The real control plane: it is what was published, and nothing of it stays behind."""

import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plane import lanes, release, versions
from tests.plane.places import Binaries
from tests.plane.release import DownloadUrls, WrongSum
from tests.repo.files import ROOT


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
    assert {address for pid in pids for address in _listening(int(pid))} == {"0100007F"}, "on loopback only"
    watched = [os.pidfd_open(int(pid)) for pid in pids]
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdin.close()
    run.stdout.close()
    for each in watched:
        assert select.select([each], [], [], 60)[0], "still alive 60 s after its parent was killed"
        os.close(each)
    shutil.rmtree(folder)


# --- Where it comes from ---------------------------------------------------------------------------------------------


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


def test_every_lane_names_tests_that_exist() -> None:
    paths = [path for some in (*lanes.LANES.values(), lanes.FIRST, lanes.BY_FILE) for path in some]
    assert [path for path in paths if not list(ROOT.glob(f"{path.rstrip('/')}*"))] == []
