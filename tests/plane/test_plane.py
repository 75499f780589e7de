"""The real control plane is what was published."""

from pathlib import Path

import pytest

from tests.plane import lanes, release, versions
from tests.plane.release import DownloadUrls, WrongSum
from tests.repo.files import ROOT


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
