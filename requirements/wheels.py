#!/usr/bin/env python3
"""Collects the wheels of lock files for the Python of a base image (`make wheels`).

    python requirements/wheels.py BASE FOLDER [+MACHINE...] LOCK...

This machine may have another Python, C library or processor than the image: the image's are read and passed to pip.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

_FACTS = (
    "import json, os, platform, sys\n"
    "glibc = 'CS_GNU_LIBC_VERSION' in os.confstr_names and os.confstr('CS_GNU_LIBC_VERSION')\n"
    "facts = {'python': '%d.%d' % sys.version_info[:2], 'machine': platform.machine(), 'glibc': glibc or ''}\n"
    "print(json.dumps(facts))"
)
_LEGACY = {(2, 17): "manylinux2014", (2, 12): "manylinux2010", (2, 5): "manylinux1"}
_MUSL = 2  # the newest minor version of musl 1 that wheels name


@dataclass(frozen=True, slots=True)
class Target:
    """What decides which wheel fits: `python` "3.12", `machine` "x86_64", `glibc` "glibc 2.36" or, with musl, ""."""

    python: str
    machine: str
    glibc: str

    def platforms(self) -> Iterator[str]:
        """The platform tags that fit, best first."""
        if not self.glibc:
            yield from (f"musllinux_1_{minor}_{self.machine}" for minor in range(_MUSL, -1, -1))
            return
        newest = int(self.glibc.split(".")[1])
        for minor in range(newest, 4, -1):
            yield f"manylinux_2_{minor}_{self.machine}"
            if legacy := _LEGACY.get((2, minor)):
                yield f"{legacy}_{self.machine}"


def asked(base: str) -> Target:
    """What the base image says about itself."""
    docker = shutil.which("docker")
    if not docker:
        raise SystemExit("wheels: docker is not installed")
    command = [docker, "run", "--rm", "--network", "none", "--entrypoint", "python3", base, "-c", _FACTS]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - docker
    if ran.returncode != 0:
        raise SystemExit(f"wheels: cannot run python3 in {base}: {ran.stderr.strip()}")
    return Target(**json.loads(ran.stdout))


def download(target: Target, folder: Path, known: Path, locks: Sequence[str]) -> int:
    """The exit code of pip; what lies in `known` is not fetched again."""
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--quiet"]
    command += ["--require-hashes", "--only-binary", ":all:", "--dest", str(folder), "--find-links", str(known)]
    command += ["--implementation", "cp", "--python-version", target.python]
    for tag in target.platforms():
        command += ["--platform", tag]
    for lock in locks:
        command += ["--requirement", lock]
    return subprocess.run(command, check=False).returncode  # noqa: S603 - pip


def main(base: str, folder: str, *arguments: str) -> int:
    """Arguments are lock files and, as `+aarch64`, machines to collect for instead of the base image's own."""
    machines = [each[1:] for each in arguments if each.startswith("+")]
    locks = [each for each in arguments if not each.startswith("+")]
    own, known, draft = asked(base), Path(folder), Path(f"{folder}.new")
    shutil.rmtree(draft, ignore_errors=True)
    for each in (known, draft):
        each.mkdir(parents=True, exist_ok=True)
    for machine in machines or [own.machine]:
        if code := download(replace(own, machine=machine), draft, known, locks):
            return code
        sys.stdout.write(f"wheels: {folder} gets all for Python {own.python}, {own.glibc or 'musl'}, {machine}\n")
    shutil.rmtree(known)  # what is no longer locked goes with it
    draft.rename(known)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
