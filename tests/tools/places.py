"""Where Helm and promtool may lie on this machine, and whether what lies there will do.

A person's own choice comes first (HELM3, HELM4, PROMTOOL: the path of a program), then the PATH, then our cache.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.plane.places import cache_root
from tests.tools import versions

_ASKING_TAKES_AT_MOST = 60.0  # seconds; 65 MB on a cold, busy disk need a few


class ToolNotFound(Exception):
    """The tool is nowhere; `why` says what was wrong with each place, the message also which command gets it."""

    def __init__(self, title: str, why: str) -> None:
        super().__init__(f"{title} is not here; `make tools` gets it. {why}")
        self.why = why


@dataclass(frozen=True, slots=True)
class Tool:
    """A program and how to tell which one lies in front of us."""

    title: str
    program: str
    variable: str
    wanted: str
    ask: tuple[str, ...]
    folder: str
    same_major: bool = True

    def fits(self, found: tuple[int, ...]) -> bool:
        """Not older than wanted, and where it matters of the same major version."""
        wanted = numbers(self.wanted)
        return found >= wanted and (found[0] == wanted[0] or not self.same_major)

    def own(self, env: Mapping[str, str]) -> Path:
        """Where `make tools` puts it."""
        return cache_root(env) / "tools" / self.folder / self.program


@dataclass(frozen=True, slots=True)
class FoundTool:
    """A tool that will do, and in words where it comes from."""

    path: Path
    origin: str


HELMS = {
    major: Tool(f"Helm {major}", "helm", f"HELM{major}", wanted, ("version", "--short"), f"helm-{wanted}")
    for major, wanted in versions.HELM.items()
}
PROMTOOL = Tool("promtool", "promtool", "PROMTOOL", versions.PROMTOOL, ("--version",), "promtool", same_major=False)
TOOLS = (*HELMS.values(), PROMTOOL)


def helm(major: int) -> Path:
    """Helm 3 or Helm 4; `Missing` unless it is there."""
    return find(HELMS[major]).path


def promtool() -> Path:
    """Checks rules of Prometheus and runs their unit tests; `Missing` unless it is there."""
    return find(PROMTOOL).path


def find(tool: Tool, env: Mapping[str, str] = os.environ) -> FoundTool:
    """The first that will do; `Missing` with what was wrong with each place."""
    passed_over: list[str] = []
    for path, place, known in _places(tool, env):
        if known and os.access(path, os.X_OK):  # asked when it was put there
            return FoundTool(path, place)
        version = None if known else version_of(tool, path)
        if version and (tool.fits(version) or place == tool.variable):
            return FoundTool(path, f"{place}, {_text(version)}")
        passed_over.append(f"{place}: {_why(path, version, tool)}")
    raise ToolNotFound(tool.title, "; ".join(passed_over))


def version_of(tool: Tool, path: Path) -> tuple[int, ...] | None:
    """(3, 22, 0), or None if the program does not run or says something else."""
    try:
        ran = subprocess.run(  # noqa: S603 - the tool that is being looked at
            [str(path), *tool.ask], capture_output=True, text=True, timeout=_ASKING_TAKES_AT_MOST, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\bv?(\d+\.\d+\.\d+)", ran.stdout + ran.stderr)  # old promtools speak on stderr
    return numbers(match[1]) if ran.returncode == 0 and match else None


def numbers(version: str) -> tuple[int, ...]:
    """(3, 22, 0) for `v3.22.0`."""
    return tuple(map(int, version.removeprefix("v").split(".")))


def _places(tool: Tool, env: Mapping[str, str]) -> Iterator[tuple[Path, str, bool]]:
    """Path, in words where that is, and whether its version needs no asking."""
    if chosen := env.get(tool.variable):
        yield Path(chosen), tool.variable, False
    if on_path := shutil.which(tool.program, path=env.get("PATH")):
        yield Path(on_path), "the PATH", False
    yield tool.own(env), "our cache", True


def _why(path: Path, version: tuple[int, ...] | None, tool: Tool) -> str:
    if version:
        return f"{path} is {_text(version)}, the tests want {tool.wanted.removeprefix('v')}"
    return f"{path} does not run" if path.exists() else f"no {path}"


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
