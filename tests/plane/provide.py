"""Finds the control plane's programs, or else downloads or builds them into the cache."""

import sys
from contextlib import suppress
from pathlib import Path

from tests.plane import build, install, places, release, versions
from tests.plane.places import Binaries, Unfit
from tests.plane.progress import Progress


def provide() -> Binaries:
    """The programs, wherever they come from. Raises BuildFailed, Unfit. Says on stderr what it does."""
    try:
        return places.find()
    except Unfit as unfit:
        _say(f"not in {unfit}")
    folder = places.own_folder()
    with install.locked(folder, lambda: _say("another process is getting the control plane; waiting for it")):
        with suppress(Unfit):  # that other process may have done it
            return places.find()
        with install.replaced(folder) as draft:
            origin = _obtain(draft)
    return Binaries(folder, f"{origin}, {places.look(folder)}")


def _obtain(into: Path) -> str:
    try:
        with Progress(f"downloading Kubernetes {versions.KUBERNETES} and etcd {versions.ETCD}") as progress:
            release.download(into, progress.now)
    except release.DownloadUnreachable:
        for leftover in into.iterdir():
            leftover.unlink()
        _say("no official release to be had here: building from Go modules, at first 7 to 8 minutes on two cores")
    else:
        return "the official release"
    with Progress(f"building Kubernetes {versions.KUBERNETES} and etcd {versions.ETCD}") as progress:
        return f"built with Go {build.build(into, progress.now)}"


def _say(line: str) -> None:
    print(f"control plane: {line}", file=sys.stderr, flush=True)
