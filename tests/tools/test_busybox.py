"""Both kinds of busybox are told apart by what they do, and the one that is not here comes out of Debian's package."""

from pathlib import Path

import pytest

from tests.tools import busybox
from tests.tools.busybox import BusyboxKind
from tests.tools.fakes import environment, program, script
from tests.tools.places import ToolNotFound
from tests.tools.provide import Unobtainable

SAYS = {BusyboxKind.PLAIN: "runs", BusyboxKind.STANDALONE: "sleep\nruns"}


@pytest.mark.parametrize("kind", BusyboxKind)
def test_what_lies_on_the_path_is_taken_for_the_kind_that_it_is(kind: BusyboxKind, tmp_path: Path) -> None:
    there = program(tmp_path / "bin/busybox", SAYS[kind])
    env = environment(tmp_path)
    assert busybox.find(kind, env).path == there
    (other,) = set(BusyboxKind) - {kind}
    with pytest.raises(ToolNotFound, match=f"{there} is a {kind.title}"):
        busybox.find(other, env)


def test_what_a_person_names_comes_first(tmp_path: Path) -> None:
    program(tmp_path / "bin/busybox", SAYS[BusyboxKind.PLAIN])
    mine = program(tmp_path / "mine", SAYS[BusyboxKind.PLAIN])
    assert busybox.find(BusyboxKind.PLAIN, environment(tmp_path, BUSYBOX=str(mine))).path == mine


@pytest.mark.parametrize("kind", BusyboxKind)
def test_one_that_is_not_here_comes_out_of_the_package_once(kind: BusyboxKind, tmp_path: Path) -> None:
    lies = program(tmp_path / "packed", SAYS[kind])
    program(tmp_path / "bin/busybox", "does nothing of the kind")
    script(tmp_path / "bin/apt-get", f'echo "$*" >> {tmp_path}/asked; touch it.deb')
    script(tmp_path / "bin/dpkg-deb", f'mkdir -p "$3/bin"; cp {lies} "$3/bin/busybox"')
    env = environment(tmp_path)
    found = busybox.provide(kind, env)
    assert busybox.provide(kind, env).path == found.path == busybox.find(kind, env).path
    (asked,) = (tmp_path / "asked").read_text().splitlines()
    assert asked.endswith(f" {kind.value}")


def test_where_it_cannot_be_had_a_person_is_told_what_to_do(tmp_path: Path) -> None:
    program(tmp_path / "bin/busybox", "?")
    script(tmp_path / "bin/apt-get", "echo no network >&2; exit 100")
    with pytest.raises(Unobtainable, match=r"no network.* into BUSYBOX_STANDALONE"):
        busybox.provide(BusyboxKind.STANDALONE, environment(tmp_path))
