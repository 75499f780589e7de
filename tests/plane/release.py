"""Downloads the official release of Kubernetes and etcd and checks every file against its published SHA-256 sum."""

import hashlib
import platform
import re
import sys
import tarfile
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.plane import versions

_REACHABLE_WITHIN = 6.0  # seconds for a connection, and for a checksum of 64 bytes: an offline machine must not wait
_STALLED_AFTER = 30.0  # seconds without a single byte
_CHUNK = 1 << 18
_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class DownloadUnreachable(Exception):
    """The official release cannot be had here; the message says why."""


class WrongSum(Exception):
    """A downloaded file is not what was published."""


def architecture() -> str:
    """`amd64` or `arm64`; Unreachable where no control plane is published for this machine."""
    found = _ARCHITECTURES.get(platform.machine().lower())
    if not sys.platform.startswith("linux") or found is None:
        raise DownloadUnreachable(f"no control plane is published for {sys.platform} on {platform.machine()}")
    return found


def download(into: Path, say: Callable[[str], None]) -> None:
    """Put the programs into `into`; DownloadUnreachable or WrongSum if that cannot be."""
    arch = architecture()
    kubernetes = f"https://dl.k8s.io/release/{versions.KUBERNETES}/bin/linux/{arch}"
    etcd = f"https://github.com/etcd-io/etcd/releases/download/{versions.ETCD}"
    archive = f"etcd-{versions.ETCD}-linux-{arch}.tar.gz"
    programs = [program for program in versions.PROGRAMS if program != "etcd"]
    sums = {program: _first_word(_soon(f"{kubernetes}/{program}.sha256")) for program in programs}
    sums[archive] = _listed(_soon(f"{etcd}/SHA256SUMS"), archive)
    for program in programs:
        _fetch(f"{kubernetes}/{program}", into / program, sums[program], say)
        (into / program).chmod(0o755)
    _fetch(f"{etcd}/{archive}", into / archive, sums[archive], say)
    _unpack_etcd(into / archive, into)
    (into / archive).unlink()


def _first_word(text: str) -> str:
    word = (text.split() or [""])[0].lower()
    if not re.fullmatch(r"[0-9a-f]{64}", word):
        raise DownloadUnreachable(f"a published checksum reads {text[:80]!r}")
    return word


def _listed(text: str, name: str) -> str:
    for line in text.splitlines():
        if line.split()[1:] == [name]:
            return _first_word(line)
    raise DownloadUnreachable(f"SHA256SUMS does not list {name}")


def _soon(url: str) -> str:
    """A small text."""
    try:
        with urllib.request.urlopen(url, timeout=_REACHABLE_WITHIN) as response:  # noqa: S310 - https, see `download`
            return str(response.read(1 << 16).decode())
    except (OSError, ValueError) as error:
        raise DownloadUnreachable(f"{url}: {error}") from error


def _fetch(url: str, path: Path, wanted: str, say: Callable[[str], None]) -> None:
    digest = hashlib.sha256()
    done = 0
    try:
        with urllib.request.urlopen(url, timeout=_STALLED_AFTER) as response, path.open("wb") as file:  # noqa: S310
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                say(f"{path.name}, {done / 1e6:.0f} MB")
    except OSError as error:
        raise DownloadUnreachable(f"{url}: {error}") from error
    if digest.hexdigest() != wanted:
        raise WrongSum(f"{url} has SHA-256 {digest.hexdigest()}, published is {wanted}: not used")


def _unpack_etcd(archive: Path, into: Path) -> None:
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            if member.isfile() and Path(member.name).name == "etcd":
                inner = tar.extractfile(member)
                if inner is not None:
                    (into / "etcd").write_bytes(inner.read())
                    (into / "etcd").chmod(0o755)
                    return
    raise WrongSum(f"{archive.name} holds no etcd")
