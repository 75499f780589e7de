"""Where the programs may lie on this machine, and whether a place has them all in the right version."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.plane import versions

_ASKING_TAKES_AT_MOST = 60.0  # seconds; a multi-call binary of 160 MB on a cold, busy disk needs a few
CHOSEN = "KUBEBUILDER_ASSETS"
"""A person named it, so its version is their business."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with all of the programs, and in words where it comes from."""

    folder: Path
    origin: str

    def __getitem__(self, program: str) -> str:
        return str(self.folder / program)


class Unfit(Exception):
    """A place, or each of them, will not do; the message says why."""


def cache_root() -> Path:
    """Our own part of the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jobset-gate"


def own_folder() -> Path:
    """Where `make control-plane` puts what it downloads or builds."""
    return cache_root() / "control-plane" / versions.KUBERNETES


def places() -> Iterator[tuple[str, Path]]:
    """All places, with a name for people, in the order in which they are looked at."""
    if assets := os.environ.get(CHOSEN):
        yield CHOSEN, Path(assets)
    yield "our cache", own_folder()
    yield "the cache of our kind", Path(os.environ.get("KIND_HOME") or cache_root() / "kind") / "bin"


def find() -> Binaries:
    """The programs of the first place that has everything. Raises Unfit."""
    passed_over = []
    for name, folder in places():
        try:
            return Binaries(folder, f"{name}, {look(folder, any_version=name == CHOSEN)}")
        except Unfit as unfit:
            passed_over.append(f"{name} ({folder}): {unfit}")
    raise Unfit("; ".join(passed_over))


def look(folder: Path, *, any_version: bool = False) -> str:
    """The version of the programs of one place. Raises Unfit."""
    if not folder.is_dir():
        raise Unfit("no such folder")
    missing = [program for program in versions.PROGRAMS if not os.access(folder / program, os.X_OK)]
    if missing:
        raise Unfit(f"{', '.join(missing)} not there")
    found = version_of(folder / "kube-apiserver")
    if found is None:
        raise Unfit("its kube-apiserver does not run on this machine")
    if found != versions.KUBERNETES and not any_version:
        raise Unfit(f"it is {found}, the tests want {versions.KUBERNETES}")
    return found


def version_of(apiserver: Path) -> str | None:
    """`v1.36.3`, or None if the program does not run or says something else."""
    try:
        ran = subprocess.run(  # noqa: S603 - a program of the place that is being looked at
            [str(apiserver), "--version"], capture_output=True, text=True, timeout=_ASKING_TAKES_AT_MOST, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"Kubernetes (v\d+\.\d+\.\d+\S*)", ran.stdout)
    return match[1] if ran.returncode == 0 and match else None
