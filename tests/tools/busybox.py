"""Both kinds of busybox for the tests of our scripts: a shell that asks the PATH for `sleep`, and one that does not.

Debian's `busybox` looks at the PATH; its `busybox-static` and Alpine's take their own programs first. A person's
own choice comes first (BUSYBOX, BUSYBOX_STANDALONE: the path of a program), then the PATH, then our cache, which is
filled from Debian's packages.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path

from tests.plane import install
from tests.plane.places import cache_root
from tests.plane.progress import Progress
from tests.tools import debian
from tests.tools.places import FoundTool, ToolNotFound
from tests.tools.provide import Unobtainable

PROGRAM = "busybox"
_ASKING_TAKES_AT_MOST = 60.0  # seconds


class BusyboxKind(Enum):
    """Its value is Debian's package."""

    PLAIN = "busybox"
    STANDALONE = "busybox-static"

    @property
    def title(self) -> str:
        """In words."""
        return (
            "busybox that looks at the PATH" if self is BusyboxKind.PLAIN else "busybox that prefers its own programs"
        )

    @property
    def variable(self) -> str:
        """Where a person may name one."""
        return "BUSYBOX" if self is BusyboxKind.PLAIN else "BUSYBOX_STANDALONE"

    def own(self, env: Mapping[str, str]) -> Path:
        """Where `make tools` puts it."""
        return cache_root(env) / "tools" / self.value / PROGRAM


def find(kind: BusyboxKind, env: Mapping[str, str] = os.environ) -> FoundTool:
    """The first of that kind; `Missing` with what was wrong with each place."""
    passed_over = []
    for path, place in _places(kind, env):
        found = kind_of(path)
        if found is kind:
            return FoundTool(path, place)
        passed_over.append(f"{place}: {path} {'does not run' if found is None else f'is a {found.title}'}")
    raise ToolNotFound(kind.title, "; ".join(passed_over))


def provide(kind: BusyboxKind, env: Mapping[str, str] = os.environ) -> FoundTool:
    """Finds it, or takes it out of Debian's package. Says on stderr what it does. Unobtainable."""
    try:
        return find(kind, env)
    except ToolNotFound as missing:
        _say(f"a {kind.title} is not here ({missing.why})")
    folder = kind.own(env).parent
    with install.locked(folder, lambda: _say(f"another process is getting a {kind.title}; waiting for it")):
        if not kind.own(env).exists():
            with install.replaced(folder) as draft, Progress(f"getting a {kind.title}") as progress:
                try:
                    debian.program(kind.value, PROGRAM, draft / PROGRAM, progress.now, env)
                except debian.NoPackage as error:
                    raise Unobtainable(f"{error}. Put the path of a {kind.title} into {kind.variable}") from error
    try:
        return FoundTool(find(kind, env).path, f"Debian's package {kind.value}")
    except ToolNotFound as missing:
        raise Unobtainable(missing.why) from missing


def kind_of(path: Path) -> BusyboxKind | None:
    """By whether its shell finds a program where there is none; None if it does not run."""
    try:
        ran = subprocess.run(  # noqa: S603 - the busybox that is being looked at
            [PROGRAM, "sh", "-c", "command -v sleep; echo runs"],
            executable=path,
            env={"PATH": "/nowhere"},
            capture_output=True,
            text=True,
            timeout=_ASKING_TAKES_AT_MOST,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {"runs\n": BusyboxKind.PLAIN, "sleep\nruns\n": BusyboxKind.STANDALONE}.get(ran.stdout)


def _places(kind: BusyboxKind, env: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    if chosen := env.get(kind.variable):
        yield Path(chosen), kind.variable
    if on_path := shutil.which(PROGRAM, path=env.get("PATH")):
        yield Path(on_path), "the PATH"
    yield kind.own(env), "our cache"


def _say(line: str) -> None:
    print(f"tools: {line}", file=sys.stderr, flush=True)
