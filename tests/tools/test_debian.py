"""A program out of a Debian package: by the lists that are there, by lists of our own, and never half."""

from pathlib import Path

import pytest

from tests.tools import debian
from tests.tools.debian import NoPackage
from tests.tools.fakes import environment, script

DOWNLOADS = "touch prometheus_2_amd64.deb"
UNPACKS = 'mkdir -p "$3/usr/bin"; echo promtool > "$3/usr/bin/promtool"'


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "promtool"


def machine(folder: Path, apt: str, dpkg: str = UNPACKS) -> dict[str, str]:
    """A Debian of straw that writes down what apt-get was asked."""
    script(folder / "bin/apt-get", f'echo "$*" >> {folder}/asked\n{apt}')
    script(folder / "bin/dpkg-deb", dpkg)
    return environment(folder)


def test_the_program_arrives_executable(tmp_path: Path, output: Path) -> None:
    debian.program("prometheus", "promtool", output, print, machine(tmp_path, DOWNLOADS))
    assert output.read_text() == "promtool\n"
    assert output.stat().st_mode & 0o777 == 0o755


def test_without_lists_of_packages_it_fetches_some_of_its_own(tmp_path: Path, output: Path) -> None:
    """As in most container images; and the machine's own lists can only be written by root."""
    lists_first = f'case "$*" in *Dir::State*) [ "$1" = update ] || {DOWNLOADS} ;; *) exit 100 ;; esac'
    debian.program("prometheus", "promtool", output, print, machine(tmp_path, lists_first))
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line.split()[0] for line in asked] == ["download", "update", "download"]
    assert all("Dir::State::Lists" in line and "Dir::Cache" in line for line in asked[1:])
    assert output.exists()


def test_what_apt_says_is_told(tmp_path: Path, output: Path) -> None:
    env = machine(tmp_path, "echo 'E: Unable to locate package prometheus' >&2; exit 100")
    with pytest.raises(NoPackage, match="Unable to locate package prometheus"):
        debian.program("prometheus", "promtool", output, print, env)
    assert not output.exists()


def test_a_package_without_the_program_is_told(tmp_path: Path, output: Path) -> None:
    env = machine(tmp_path, DOWNLOADS, dpkg="exit 0")
    with pytest.raises(NoPackage, match="the package prometheus holds no /usr/bin/promtool"):
        debian.program("prometheus", "promtool", output, print, env)


def test_another_system_than_debian_is_told(tmp_path: Path, output: Path) -> None:
    with pytest.raises(NoPackage, match="no Debian"):
        debian.program("prometheus", "promtool", output, print, {"HOME": str(tmp_path), "PATH": str(tmp_path)})
