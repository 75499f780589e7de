"""Takes a single program out of a package of Debian's, without installing it and without being root."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

PACKAGE_SECONDS = 300.0


class NoPackage(Exception):
    """The package cannot be had here; the message says why."""


def program(package: str, name: str, output: Path, say: Callable[[str], None], env: Mapping[str, str]) -> None:
    """/usr/bin/NAME or /bin/NAME of a package at `output`; apt checks it against Debian's signature. NoPackage."""
    if not shutil.which("apt-get", path=env.get("PATH")) or not shutil.which("dpkg-deb", path=env.get("PATH")):
        raise NoPackage("this is no Debian: there is no apt-get")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        say(f"the package {package}")
        _download(package, work, say, env)
        for file in work.glob("*.deb"):
            _run(["dpkg-deb", "--extract", str(file), str(work / "out")], work, env)
        found = [path for folder in ("usr/bin", "bin") if (path := work / "out" / folder / name).is_file()]
        if not found:
            raise NoPackage(f"the package {package} holds no /usr/bin/{name}")
        shutil.copy(found[0], output)
        output.chmod(0o755)


def _download(package: str, work: Path, say: Callable[[str], None], env: Mapping[str, str]) -> None:
    """By the lists of packages that lie here, or else by lists of our own, for the machine's are root's."""
    download = ["apt-get", "download", "--quiet=2", "--option=APT::Sandbox::User=", package]
    try:
        _run(download, work, env)
    except NoPackage:
        say("apt's lists of packages")
        for name in ("lists/partial", "cache/archives/partial"):
            (work / name).mkdir(parents=True)
        own = [f"--option=Dir::State::Lists={work}/lists", f"--option=Dir::Cache={work}/cache"]
        _run(["apt-get", "update", "--quiet=2", "--option=APT::Sandbox::User=", *own], work, env)
        _run([*download, *own], work, env)


def _run(command: list[str], cwd: Path, env: Mapping[str, str]) -> None:
    quiet = {**env, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        ran = subprocess.run(  # noqa: S603 - apt-get or dpkg-deb
            command, cwd=cwd, env=quiet, capture_output=True, text=True, timeout=PACKAGE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NoPackage(f"{command[0]} does not end") from error
    if ran.returncode != 0:
        raise NoPackage(f"{' '.join(command[:2])}: {(ran.stderr or ran.stdout).strip()[-500:]}")
