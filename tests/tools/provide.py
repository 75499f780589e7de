"""Finds Helm and promtool, or else gets them into the cache: Helm from Go modules, promtool from Debian's package."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.plane import install
from tests.plane.progress import Progress
from tests.tools import build, debian, places
from tests.tools.places import HELMS, PROMTOOL, FoundTool, Tool, ToolNotFound


class Unobtainable(Exception):
    """A tool that is not here cannot be had either; the message says why, and what a person can do."""


def provide(tool: Tool, env: Mapping[str, str] = os.environ) -> FoundTool:
    """The tool, wherever it comes from. Says on stderr what it does. plane.build.BuildFailed, Unobtainable."""
    try:
        return places.find(tool, env)
    except ToolNotFound as missing:
        _say(f"{tool.title} is not here ({missing.why})")
    folder = tool.own(env).parent
    with install.locked(folder, lambda: _say(f"another process is getting {tool.title}; waiting for it")):
        if tool.own(env).exists():  # that other process has done it
            return places.find(tool, env)
        with install.replaced(folder) as draft:
            with Progress(f"getting {tool.title}") as progress:
                origin = _obtain(tool, draft / tool.program, progress.now, env)
            _check(tool, draft / tool.program)
    return FoundTool(tool.own(env), origin)


def _obtain(tool: Tool, output: Path, say: Callable[[str], None], env: Mapping[str, str]) -> str:
    for major, helm in HELMS.items():
        if tool == helm:
            return f"built with Go {build.helm(major, output, say, env)}"
    try:
        debian.program("prometheus", PROMTOOL.program, output, say, env)
    except debian.NoPackage as error:
        raise Unobtainable(
            f"{error}. promtool comes with Prometheus: put it on the PATH, or its path into {tool.variable}"
        ) from error
    return "Debian's package prometheus"


def _check(tool: Tool, path: Path) -> None:
    found = places.version_of(tool, path)
    if found is None or not tool.fits(found):
        raise Unobtainable(f"{tool.title} as it can be had here will not do: {found or 'it does not run'}")


def _say(line: str) -> None:
    print(f"tools: {line}", file=sys.stderr, flush=True)
