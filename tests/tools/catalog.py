"""The tools of the tests: how each is recognized, where it is looked for, and where it comes from.

The path that a user gives in the tool's variable comes first, whatever its version, then the PATH, then our cache,
which `make tools` fills.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final

from tests.plane import install
from tests.plane.build import BuildFailed, compiled
from tests.plane.places import cache_root
from tests.plane.progress import Progress
from tests.tools import debian, versions

MODULE: Final = Path(__file__).parent / "gomod"
_TIMEOUT: Final = 60.0  # seconds; 65 MB on a cold, busy disk need a few
Say = Callable[[str], None]


class ToolNotFound(Exception):
    """The tool is nowhere, or cannot be had; the message says what was looked at and what to do."""


@dataclass(frozen=True, slots=True)
class Tool:
    """`identify` says what lies at a path, None if it does not run; `fits` whether that will do."""

    title: str
    programs: tuple[str, ...]
    """Names on the PATH; the first is that in the cache."""
    variable: str
    folder: str
    """In the cache."""
    wanted: str
    identify: Callable[[Path], str | None]
    fits: Callable[[str], bool]
    get: Callable[[Path, Say], str]
    """Puts it at a path, or installs it; says in words where it comes from."""

    def find(self) -> Path:
        """The first that will do. Raises ToolNotFound."""
        return self._find()[0]

    def provide(self) -> tuple[Path, str]:
        """Finds it, or gets it; also in words where it comes from. Raises ToolNotFound."""
        try:
            return self._find()
        except ToolNotFound as missing:
            print(f"tools: {missing}", file=sys.stderr, flush=True)
        folder = self._cached.parent
        with install.locked(folder, lambda: print(f"tools: waiting for another process that gets {self.title}")):
            if not self._cached.exists():
                self._get(folder)
        return self._find()

    @property
    def _cached(self) -> Path:
        return cache_root() / "tools" / self.folder / self.programs[0]

    def _get(self, folder: Path) -> None:
        try:
            with install.replaced(folder) as draft, Progress(f"getting {self.title}") as progress:
                print(f"tools: {self.get(draft / self.programs[0], progress.now)}", file=sys.stderr, flush=True)
        except (debian.PackageUnavailable, BuildFailed, OSError) as error:
            named = f"put {self.title} ({self.wanted}) on the PATH, or its path into {self.variable}"
            raise ToolNotFound(f"{self.title}: {error}; {named}") from error

    def _find(self) -> tuple[Path, str]:
        passed_over = []
        for path, place in self._places():
            found = self.identify(path)
            if found and (place == self.variable or self.fits(found)):
                return path, f"{place}, {found}"
            passed_over.append(f"{place}: {path} {f'is {found}' if found else 'does not run'}")
        why = "; ".join(passed_over)
        raise ToolNotFound(f"{self.title} ({self.wanted}) is not here; `make tools` gets it. {why}")

    def _places(self) -> Iterator[tuple[Path, str]]:
        if chosen := os.environ.get(self.variable):
            yield Path(chosen), self.variable
        for name in self.programs:
            if on_path := shutil.which(name):
                yield Path(on_path), "the PATH"
        yield self._cached, "our cache"


def _version(path: Path, *arguments: str) -> str | None:
    try:
        ran = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=_TIMEOUT, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\bv?(\d+\.\d+\.\d+)", ran.stdout + ran.stderr)  # old promtools write to stderr
    return found[1] if found else None


def _numbers(version: str) -> tuple[int, ...]:
    """(3, 22, 0) for `v3.22.0`."""
    return tuple(map(int, version.removeprefix("v").split(".")))


def _newer(wanted: str, found: str) -> bool:
    return _numbers(found) >= _numbers(wanted)


def _same_major(wanted: str, found: str) -> bool:
    return _newer(wanted, found) and _numbers(found)[0] == _numbers(wanted)[0]


# --- Helm ------------------------------------------------------------------------------------------------------------


def _build_helm(major: int, output: Path, say: Say) -> str:
    """From Go modules: go.sum names the hash of everything that goes into it."""
    stamps = {f"helm.sh/helm/v{major}/internal/version.version": versions.HELM[major]}
    if major == 3:  # Helm 4 detects which Kubernetes `helm template` assumes
        minor = re.search(r"k8s\.io/client-go v\d+\.(\d+)", (MODULE / "go.mod").read_text())
        assert minor
        for name in ("chartutil", "lint/rules"):
            stamps |= {
                f"helm.sh/helm/v3/pkg/{name}.k8sVersion{key}": to for key, to in (("Major", "1"), ("Minor", minor[1]))
            }
    return f"built with Go {compiled(MODULE, f'helm.sh/helm/v{major}/cmd/helm', output, stamps=stamps, say=say)}"


def _helm(major: int) -> Tool:
    wanted = versions.HELM[major]
    return Tool(
        f"Helm {major}", ("helm",), f"HELM{major}", f"helm-{wanted}", wanted,
        lambda path: _version(path, "version", "--short"), partial(_same_major, wanted), partial(_build_helm, major),
    )  # fmt: skip


HELMS: Final = {major: _helm(major) for major in versions.HELM}


# --- Out of Debian's packages ----------------------------------------------------------------------------------------


def _busybox_kind(path: Path) -> str | None:
    """Whether its shell finds a program where the PATH has none."""
    try:
        ran = subprocess.run(
            ["busybox", "sh", "-c", "command -v sleep; echo runs"],  # noqa: S607
            executable=path, env={"PATH": "/nowhere"}, capture_output=True, text=True, timeout=_TIMEOUT, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {"runs\n": "busybox", "sleep\nruns\n": "busybox-static"}.get(ran.stdout)


def _busybox(package: str, variable: str) -> Tool:
    """Debian's `busybox` looks for programs on the PATH; its `busybox-static`, as Alpine's, prefers its own."""
    get = partial(debian.unpack, package, "busybox")
    return Tool(package, ("busybox",), variable, package, f"as Debian's {package}", _busybox_kind, package.__eq__, get)


BUSYBOXES: Final = {
    "busybox": _busybox("busybox", "BUSYBOX"),
    "busybox-static": _busybox("busybox-static", "BUSYBOX_STANDALONE"),
}
PROMTOOL: Final = Tool(
    "promtool", ("promtool",), "PROMTOOL", "promtool", versions.PROMTOOL, lambda path: _version(path, "--version"),
    partial(_newer, versions.PROMTOOL), partial(debian.unpack, "prometheus", "promtool"),
)  # fmt: skip


def _install_chromium(output: Path, say: Say) -> str:
    """It needs libraries and fonts of the system, so it is installed by root."""
    if os.geteuid() != 0:
        raise debian.PackageUnavailable("only root can install it (apt-get install chromium)")
    say("Debian's package chromium")
    debian.install("chromium")
    output.symlink_to(shutil.which("chromium") or "/usr/bin/chromium")
    return "Debian's package chromium, installed now"


CHROMIUM: Final = Tool(
    "Chromium",
    ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chromium-headless-shell"),
    "CHROMIUM", "chromium", versions.CHROMIUM, lambda path: _version(path, "--version"),
    partial(_newer, versions.CHROMIUM), _install_chromium,
)  # fmt: skip
TOOLS: Final = (*HELMS.values(), PROMTOOL, *BUSYBOXES.values(), CHROMIUM)


@cache
def helm(major: int) -> Path:
    """Helm 3 or Helm 4. Raises ToolNotFound."""
    return HELMS[major].find()
