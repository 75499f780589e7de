"""A browser that is there is taken; else root installs it, and anybody else is told in one line what to do."""

from pathlib import Path

import pytest

from tests.tools import chromium
from tests.tools.fakes import environment, program, script
from tests.tools.places import ToolNotFound
from tests.tools.provide import Unobtainable

SAYS = "Chromium 156.0.8078.79 built on Debian GNU/Linux 12 (bookworm)"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A machine with a shell and nothing else."""
    (tmp_path / "bin").mkdir()
    for name in ("sh", "echo", "chmod", "cat"):
        (tmp_path / "bin" / name).symlink_to(f"/bin/{name}")
    return {**environment(tmp_path), "PATH": f"{tmp_path}/bin"}


def apt(folder: Path, *, listed: bool = True) -> None:
    """An apt-get of straw that brings a browser, without lists of packages only after an update."""
    brings = f"printf '#!/bin/sh\\necho {SAYS[:22]}\\n' > {folder}/bin/chromium; chmod +x {folder}/bin/chromium"
    has = "true" if listed else f"test -e {folder}/listed"
    update = f": > {folder}/listed"
    refuses = "echo E: Unable to locate package chromium >&2; exit 100"
    cases = f"case $1 in update) {update} ;; *) if {has}; then {brings}; else {refuses}; fi ;; esac"
    (folder / "bin/test").symlink_to("/usr/bin/test")
    script(folder / "bin/apt-get", f'echo "$*" >> {folder}/asked\n{cases}')


@pytest.mark.parametrize("name", chromium.NAMES)
def test_one_on_the_path_is_taken(name: str, env: dict[str, str], tmp_path: Path) -> None:
    there = program(tmp_path / "bin" / name, SAYS)
    apt(tmp_path)
    assert chromium.provide(env, root=True).path == there
    assert not (tmp_path / "asked").exists()


def test_what_a_person_names_comes_first_whatever_its_version(env: dict[str, str], tmp_path: Path) -> None:
    program(tmp_path / "bin/chromium", SAYS)
    mine = program(tmp_path / "mine", "Chromium 90.0.4430.72")
    assert chromium.find({**env, "CHROMIUM": str(mine)}).path == mine


@pytest.mark.parametrize(("says", "fault"), [("Chromium 90.0.4430.72", "is 90, the tests want"), ("", "does not run")])
def test_one_that_will_not_do_is_told(says: str, fault: str, env: dict[str, str], tmp_path: Path) -> None:
    there = program(tmp_path / "bin/chromium", says)
    with pytest.raises(ToolNotFound, match=f"`make tools` gets it. the PATH: {there} {fault}"):
        chromium.find(env)


@pytest.mark.parametrize("listed", [True, False])
def test_root_installs_it_with_as_little_as_possible(listed: bool, env: dict[str, str], tmp_path: Path) -> None:
    apt(tmp_path, listed=listed)
    assert chromium.provide(env, root=True).path == tmp_path / "bin/chromium"
    asked = [line.split() for line in (tmp_path / "asked").read_text().splitlines()]
    assert [words[0] for words in asked] == (["install"] if listed else ["install", "update", "install"])
    assert {"--no-install-recommends", "chromium"} <= set(asked[-1])


def test_anybody_else_is_told_what_to_install(env: dict[str, str], tmp_path: Path) -> None:
    apt(tmp_path)
    with pytest.raises(Unobtainable, match=r"only root .*sudo apt-get install chromium.*into CHROMIUM") as raised:
        chromium.provide(env, root=False)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "asked").exists()


def test_a_machine_without_apt_is_told_what_else_helps(env: dict[str, str]) -> None:
    with pytest.raises(Unobtainable, match=r"no apt-get .*on the PATH"):
        chromium.provide(env, root=True)


def test_what_apt_says_is_told(env: dict[str, str], tmp_path: Path) -> None:
    script(tmp_path / "bin/apt-get", "echo E: Unable to locate package chromium >&2; exit 100")
    with pytest.raises(Unobtainable, match="Unable to locate package chromium"):
        chromium.provide(env, root=True)


def test_the_one_that_make_tools_promises_is_here() -> None:
    """The tests of the status page drive it."""
    assert chromium.find().path.exists()
