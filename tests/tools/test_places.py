"""Where Helm and promtool are looked for, and what is good enough."""

from pathlib import Path

import pytest

from tests.tools import places, versions
from tests.tools.fakes import environment, program
from tests.tools.places import HELMS, PROMTOOL, ToolNotFound

HELM_3_SAYS = "v3.22.0+gabcdef"
PROMTOOL_SAYS = "promtool, version 2.53.1 (branch: HEAD, revision: abc)\n  go version: go1.22.3"


def test_what_a_person_names_comes_before_everything_whatever_its_version(tmp_path: Path) -> None:
    program(tmp_path / "bin/helm", HELM_3_SAYS)
    mine = program(tmp_path / "mine", "v3.9.4+gabcdef")
    found = places.find(HELMS[3], environment(tmp_path, HELM3=str(mine), HELM4="/nowhere"))
    assert (found.path, found.origin) == (mine, "HELM3, 3.9.4")


def test_the_path_comes_before_our_cache(tmp_path: Path) -> None:
    env = environment(tmp_path)
    program(HELMS[3].own(env), HELM_3_SAYS)
    on_path = program(tmp_path / "bin/helm", HELM_3_SAYS)
    assert places.find(HELMS[3], env).path == on_path


@pytest.mark.parametrize("says", ["v3.22.0", "v3.22.1+g1", "v3.30.0+gabc"])
def test_a_helm_of_the_same_major_version_may_be_newer(tmp_path: Path, says: str) -> None:
    on_path = program(tmp_path / "bin/helm", says)
    assert places.find(HELMS[3], environment(tmp_path)).path == on_path


@pytest.mark.parametrize("says", ["v3.21.9+gabc", "v4.3.1+gabc", "v2.17.0", "no version at all"])
def test_any_other_helm_on_the_path_is_passed_over(tmp_path: Path, says: str) -> None:
    """Helm 3 and Helm 4 bear one name, so that only one of them can be on the PATH."""
    env = environment(tmp_path)
    program(tmp_path / "bin/helm", says)
    ours = program(HELMS[3].own(env), HELM_3_SAYS)
    found = places.find(HELMS[3], env)
    assert (found.path, found.origin) == (ours, "our cache")


def test_each_helm_has_a_place_of_its_own_in_the_cache_that_names_its_version(tmp_path: Path) -> None:
    """A new version is not mistaken for the old one."""
    own = {major: tool.own(environment(tmp_path)) for major, tool in HELMS.items()}
    assert own == {
        major: tmp_path / ".cache/jobset-gate/tools" / f"helm-{version}" / "helm"
        for major, version in versions.HELM.items()
    }
    assert HELMS[3].own({"HOME": "/", "XDG_CACHE_HOME": "/xdg"}).is_relative_to("/xdg/jobset-gate")


@pytest.mark.parametrize(
    "says", [PROMTOOL_SAYS, "promtool, version 3.5.0 (branch: HEAD)", "promtool, version 2.42.0+ds"]
)
def test_promtool_may_be_of_any_newer_version(tmp_path: Path, says: str) -> None:
    on_path = program(tmp_path / "bin/promtool", says)
    assert places.find(PROMTOOL, environment(tmp_path)).path == on_path


def test_a_promtool_that_speaks_on_stderr_is_understood(tmp_path: Path) -> None:
    (on_path := program(tmp_path / "bin/promtool", "")).write_text(f"#!/bin/sh\necho '{PROMTOOL_SAYS}' >&2\n")
    assert places.find(PROMTOOL, environment(tmp_path)).path == on_path


def test_what_is_missing_is_told_with_all_that_was_looked_at_and_with_what_to_do(tmp_path: Path) -> None:
    (broken := tmp_path / "broken").write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    on_path = program(tmp_path / "bin/helm", "v3.9.4")
    env = environment(tmp_path, HELM4=str(broken))
    with pytest.raises(ToolNotFound) as raised:
        places.find(HELMS[4], env)
    assert str(raised.value) == (
        f"Helm 4 is not here; `make tools` gets it. HELM4: {broken} does not run; "
        f"the PATH: {on_path} is 3.9.4, the tests want 4.3.1; our cache: no {HELMS[4].own(env)}"
    )
