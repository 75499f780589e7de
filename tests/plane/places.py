"""Where the programs may lie on this machine, and whether a place has them all in the right version."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.plane import versions

_ASKING_TAKES_AT_MOST = 60.0  # seconds; a multi-call binary of 160 MB on a cold, busy disk needs a few


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with all of the programs, and in words where it comes from."""

    folder: Path
    origin: str

    def __getitem__(self, program: str) -> str:
        return str(self.folder / program)


@dataclass(frozen=True, slots=True)
class ProgramFolder:
    """A folder worth a look. `chosen`: a person named it, so its version is their business."""

    folder: Path
    name: str
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class RejectedFolder:
    """Why a place was passed over, in words for people."""

    place: ProgramFolder
    why: str


def cache_root(env: Mapping[str, str]) -> Path:
    """Our own part of the user's cache folder."""
    base = env.get("XDG_CACHE_HOME") or str(Path(env.get("HOME") or Path.home()) / ".cache")
    return Path(base) / "jobset-gate"


def own_folder(env: Mapping[str, str]) -> Path:
    """Where `make control-plane` puts what it downloads or builds."""
    return cache_root(env) / "control-plane" / versions.KUBERNETES


def places(env: Mapping[str, str]) -> Iterator[ProgramFolder]:
    """All places in the order in which they are looked at."""
    if assets := env.get("KUBEBUILDER_ASSETS"):
        yield ProgramFolder(Path(assets), "KUBEBUILDER_ASSETS", chosen=True)
    yield ProgramFolder(own_folder(env), "our cache")
    kind_home = env.get("KIND_HOME")
    yield ProgramFolder(
        Path(kind_home) / "bin" if kind_home else cache_root(env) / "kind" / "bin", "the cache of our kind"
    )


def look(place: ProgramFolder) -> Binaries | RejectedFolder:
    """The programs of one place, or why they will not do."""
    if not place.folder.is_dir():
        return RejectedFolder(place, "no such folder")
    missing = [program for program in versions.PROGRAMS if not os.access(place.folder / program, os.X_OK)]
    if missing:
        return RejectedFolder(place, f"{', '.join(missing)} not there")
    found = version_of(place.folder / "kube-apiserver")
    if found is None:
        return RejectedFolder(place, "its kube-apiserver does not run on this machine")
    if found != versions.KUBERNETES and not place.chosen:
        return RejectedFolder(place, f"it is {found}, the tests want {versions.KUBERNETES}")
    return Binaries(place.folder, f"{place.name}, {found}")


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


def find(env: Mapping[str, str] = os.environ) -> Binaries | list[RejectedFolder]:
    """The first place that has everything, or what was wrong with each."""
    unfit: list[RejectedFolder] = []
    for place in places(env):
        seen = look(place)
        if isinstance(seen, Binaries):
            return seen
        unfit.append(seen)
    return unfit
