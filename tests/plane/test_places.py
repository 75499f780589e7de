"""Where the control plane is looked for, and what is good enough."""

from pathlib import Path

import pytest

from tests.plane import build, install, places, provide, release, versions
from tests.plane.places import Binaries, ProgramFolder, RejectedFolder


def make(folder: Path, version: str = versions.KUBERNETES, without: str = "") -> Path:
    """A folder with programs that only know their version."""
    folder.mkdir(parents=True)
    for program in versions.PROGRAMS:
        if program != without:
            (folder / program).write_text(f"#!/bin/sh\necho Kubernetes {version}\n")
            (folder / program).chmod(0o755)
    return folder


def env(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PATH": "/usr/bin:/bin", **more}


def found(seen: Binaries | list[RejectedFolder]) -> Path:
    assert isinstance(seen, Binaries), seen
    return seen.folder


def test_the_assets_of_kubebuilder_come_before_everything(tmp_path: Path) -> None:
    chosen = make(tmp_path / "assets")
    make(tmp_path / ".cache/jobset-gate/control-plane" / versions.KUBERNETES)
    assert found(places.find(env(tmp_path, KUBEBUILDER_ASSETS=str(chosen)))) == chosen


def test_our_cache_comes_before_that_of_kind(tmp_path: Path) -> None:
    ours = make(tmp_path / ".cache/jobset-gate/control-plane" / versions.KUBERNETES)
    make(tmp_path / ".cache/jobset-gate/kind/bin")
    assert found(places.find(env(tmp_path))) == ours


def test_kind_leaves_a_control_plane_in_its_cache(tmp_path: Path) -> None:
    kind = make(tmp_path / ".cache/jobset-gate/kind/bin")
    assert found(places.find(env(tmp_path))) == kind


def test_kind_home_moves_that_cache(tmp_path: Path) -> None:
    kind = make(tmp_path / "elsewhere/bin")
    assert found(places.find(env(tmp_path, KIND_HOME=str(tmp_path / "elsewhere")))) == kind


def test_xdg_cache_home_moves_our_cache(tmp_path: Path) -> None:
    ours = make(tmp_path / "xdg/jobset-gate/control-plane" / versions.KUBERNETES)
    assert found(places.find(env(tmp_path, XDG_CACHE_HOME=str(tmp_path / "xdg")))) == ours


def test_assets_without_a_controller_manager_are_passed_over_with_the_reason(tmp_path: Path) -> None:
    """The assets of envtest have none."""
    assets = make(tmp_path / "assets", without="kube-controller-manager")
    seen = places.look(ProgramFolder(assets, "KUBEBUILDER_ASSETS", chosen=True))
    assert isinstance(seen, RejectedFolder)
    assert seen.why == "kube-controller-manager not there"


def test_another_version_is_passed_over_in_a_cache_but_taken_where_a_person_chose_it(tmp_path: Path) -> None:
    old = make(tmp_path / "old", version="v1.30.1")
    in_cache = places.look(ProgramFolder(old, "our cache"))
    assert isinstance(in_cache, RejectedFolder)
    assert in_cache.why == f"it is v1.30.1, the tests want {versions.KUBERNETES}"
    assert isinstance(places.look(ProgramFolder(old, "KUBEBUILDER_ASSETS", chosen=True)), Binaries)


def test_a_program_for_another_machine_is_passed_over(tmp_path: Path) -> None:
    folder = make(tmp_path / "other")
    (folder / "kube-apiserver").write_bytes(b"\x7fELF nonsense")
    seen = places.look(ProgramFolder(folder, "our cache"))
    assert isinstance(seen, RejectedFolder)
    assert seen.why == "its kube-apiserver does not run on this machine"


@pytest.fixture
def nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise release.DownloadUnreachable("nobody answers")

    monkeypatch.setattr(release, "download", refuse)


def fake_build(into: Path, *_: object) -> str:
    into.rmdir()
    make(into)
    return "1.99"


def test_what_cannot_be_downloaded_is_built_and_found_again(
    tmp_path: Path, nobody_answers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "build", fake_build)
    first = provide.provide(env(tmp_path))
    assert first.origin == f"built with Go 1.99, {versions.KUBERNETES}"
    assert provide.provide(env(tmp_path)) == Binaries(first.folder, f"our cache, {versions.KUBERNETES}")


def test_a_failed_build_leaves_nothing_in_the_cache(
    tmp_path: Path, nobody_answers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(into: Path, *_: object) -> str:
        (into / "half").write_text("half")
        raise build.BuildFailed("no")

    monkeypatch.setattr(build, "build", fail)
    with pytest.raises(build.BuildFailed):
        provide.provide(env(tmp_path))
    assert [each.name for each in places.own_folder(env(tmp_path)).parent.iterdir()] == [f".{versions.KUBERNETES}.lock"]


def test_replacing_a_folder_keeps_the_old_one_until_the_new_one_is_whole(tmp_path: Path) -> None:
    folder = tmp_path / "it"
    folder.mkdir()
    (folder / "old").touch()
    with install.replaced(folder) as draft:
        (draft / "new").touch()
        assert (folder / "old").exists()
    assert [each.name for each in folder.iterdir()] == ["new"]
    assert [each.name for each in tmp_path.iterdir()] == ["it"]
