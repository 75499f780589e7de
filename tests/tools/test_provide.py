"""What is missing is made once and found again; what fails leaves nothing behind and says why."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plane.build import BuildFailed
from tests.tools import __main__ as command
from tests.tools import build, debian, places
from tests.tools.fakes import environment, program
from tests.tools.places import HELMS, PROMTOOL, TOOLS, FoundTool, Tool
from tests.tools.provide import Unobtainable, provide


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was built or unpacked, in order; nothing real is."""
    done: list[str] = []

    def build_helm(major: int, output: Path, *_: object) -> str:
        done.append(f"helm {major}")
        program(output, HELMS[major].wanted)
        return "1.99"

    def unpack(package: str, name: str, output: Path, *_: object) -> None:
        done.append(f"{package}: {name}")
        program(output, "promtool, version 2.45.0")

    monkeypatch.setattr(build, "helm", build_helm)
    monkeypatch.setattr(debian, "program", unpack)
    return done


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A machine with nothing on it."""
    (tmp_path / "bin").mkdir()
    return {**environment(tmp_path), "PATH": f"{tmp_path}/bin"}


@pytest.mark.parametrize(
    ("tool", "how", "origin"),
    [
        (HELMS[3], "helm 3", "built with Go 1.99"),
        (HELMS[4], "helm 4", "built with Go 1.99"),
        (PROMTOOL, "prometheus: promtool", "Debian's package prometheus"),
    ],
    ids=lambda value: value.title if isinstance(value, Tool) else "",
)
def test_what_is_missing_is_made_and_found_again(
    tool: Tool, how: str, origin: str, made: list[str], env: dict[str, str]
) -> None:
    assert provide(tool, env) == FoundTool(tool.own(env), origin)
    assert provide(tool, env) == FoundTool(tool.own(env), "our cache")
    assert made == [how]


def test_a_helm_that_is_there_is_not_built(made: list[str], env: dict[str, str], tmp_path: Path) -> None:
    on_path = program(tmp_path / "bin/helm", HELMS[4].wanted)
    assert provide(HELMS[4], env).path == on_path
    assert made == []


def fails(error: Exception) -> Callable[..., str]:
    def fail(*args: object) -> str:
        outputs = [arg for arg in args if isinstance(arg, Path)]
        outputs[0].write_text("half")
        raise error

    return fail


def test_a_failed_build_leaves_nothing_in_the_cache(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "helm", fails(BuildFailed("no space left")))
    with pytest.raises(BuildFailed):
        provide(HELMS[3], env)
    folder = HELMS[3].own(env).parent
    assert [each.name for each in folder.parent.iterdir()] == [f".{folder.name}.lock"]


def test_a_machine_without_the_package_is_told_what_else_helps(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "program", fails(debian.NoPackage("this is no Debian")))
    with pytest.raises(Unobtainable, match=r"no Debian.*PATH.*PROMTOOL"):
        provide(PROMTOOL, env)
    assert not PROMTOOL.own(env).parent.exists()


@pytest.mark.parametrize("says", ["promtool, version 2.31.2", "Segmentation fault"])
def test_what_was_made_and_will_not_do_is_not_kept(
    says: str, made: list[str], env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Debian of old has an old promtool."""
    monkeypatch.setattr(debian, "program", lambda _package, _name, output, *_: program(output, says))
    with pytest.raises(Unobtainable, match="promtool as it can be had here will not do"):
        provide(PROMTOOL, env)
    assert not PROMTOOL.own(env).parent.exists()


def test_the_command_gets_those_that_are_named_and_the_rest_in_spite_of_one_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def only_helm_4(tool: Tool) -> FoundTool:
        if tool == HELMS[4]:
            return FoundTool(Path("/helm"), "here")
        raise BuildFailed("no Go")

    monkeypatch.setattr(command, "provide", only_helm_4)
    assert command.main(["helm"]) == 1
    said = capsys.readouterr()
    assert said.out == "tools: Helm 4: /helm (here)\n"
    assert said.err == "tools: Helm 3: no Go\n"
    assert command.main(["kubectl"]) == 2


def test_what_make_tools_promises_is_here_and_runs() -> None:
    """The other tests drive these."""
    for tool, path in zip(TOOLS, (places.helm(3), places.helm(4), places.promtool()), strict=True):
        version = places.version_of(tool, path)
        assert version is not None
        assert tool.fits(version)
