"""A program out of a Debian package, unpacked without being root; or the package installed as root."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

TIMEOUT = 600.0  # seconds; Chromium has 125 MB
_LOCK = "--option=DPkg::Lock::Timeout=300"  # another apt-get of this machine ends first


class PackageUnavailable(Exception):
    """The package cannot be had here; the message says why."""


def unpack(package: str, program: str, output: Path, say: Callable[[str], None]) -> str:
    """/usr/bin/PROGRAM or /bin/PROGRAM of a package at `output`; apt checks it against Debian's signature."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        say(f"the package {package}")
        download = ["apt-get", "download", "--quiet=2", "--option=APT::Sandbox::User=", package]
        try:
            _run(download, work)
        except PackageUnavailable:  # by lists of our own: the machine's are root's
            say("apt's lists of packages")
            for name in ("lists/partial", "cache/archives/partial"):
                (work / name).mkdir(parents=True)
            own = [f"--option=Dir::State::Lists={work}/lists", f"--option=Dir::Cache={work}/cache"]
            _run(["apt-get", "update", "--quiet=2", "--option=APT::Sandbox::User=", *own], work)
            _run([*download, *own], work)
        for file in work.glob("*.deb"):
            _run(["dpkg-deb", "--extract", str(file), str(work / "out")], work)
        found = [path for folder in ("usr/bin", "bin") if (path := work / "out" / folder / program).is_file()]
        if not found:
            raise PackageUnavailable(f"the package {package} holds no /usr/bin/{program}")
        shutil.copy(found[0], output)
        output.chmod(0o755)
    return f"Debian's package {package}"


def install(package: str) -> None:
    """By the lists of packages that lie here, or else by fresh ones."""
    command = ["apt-get", "install", "--yes", "--quiet", _LOCK, "--no-install-recommends", package]
    try:
        _run(command)
    except PackageUnavailable:
        _run(["apt-get", "update", "--quiet", _LOCK])
        _run(command)


def _run(command: list[str], cwd: Path | None = None) -> None:
    if not shutil.which(command[0]):
        raise PackageUnavailable(f"there is no {command[0]} here")
    quiet = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        ran = subprocess.run(command, cwd=cwd, env=quiet, capture_output=True, text=True, timeout=TIMEOUT, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as error:
        raise PackageUnavailable(f"{command[0]} does not end") from error
    if ran.returncode != 0:
        raise PackageUnavailable(f"{' '.join(command[:2])}: {(ran.stderr or ran.stdout).strip()[-500:]}")
