"""The real control plane has the versions that are promised, and its lanes name tests."""

from tests.plane import lanes, versions
from tests.repo.files import ROOT


def test_the_go_module_requires_the_versions_that_are_promised() -> None:
    text = (ROOT / "tests" / "plane" / "gomod" / "go.mod").read_text()
    assert f"k8s.io/kubernetes {versions.KUBERNETES}\n" in text
    assert f"go.etcd.io/etcd/server/v3 {versions.ETCD}\n" in text


def test_every_lane_names_tests_that_exist() -> None:
    paths = [path for some in (*lanes.LANES.values(), lanes.FIRST, lanes.BY_FILE) for path in some]
    assert [path for path in paths if not list(ROOT.glob(f"{path.rstrip('/')}*"))] == []
