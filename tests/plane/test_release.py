"""The official release: checked against its sums, and never waited for long."""

import hashlib
import io
import socket
import tarfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.plane import release, versions
from tests.plane.release import DownloadUnreachable, DownloadUrls, WrongSum


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder laid out as the release pages are, with programs that hold their own name."""
    monkeypatch.setattr(release, "architecture", lambda: "amd64")
    kubernetes = tmp_path / "www/release" / versions.KUBERNETES / "bin/linux/amd64"
    etcd = tmp_path / "www/etcd" / versions.ETCD
    kubernetes.mkdir(parents=True)
    etcd.mkdir(parents=True)
    for program in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"):
        (kubernetes / program).write_text(program)
        (kubernetes / f"{program}.sha256").write_text(hashlib.sha256(program.encode()).hexdigest())
    name = f"etcd-{versions.ETCD}-linux-amd64"
    archive = etcd / f"{name}.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for member in ("README.md", "etcdctl", "etcd"):
            entry = tarfile.TarInfo(f"{name}/{member}")
            entry.size = len(member)
            tar.addfile(entry, io.BytesIO(member.encode()))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    (etcd / "SHA256SUMS").write_text(f"{'0' * 64}  other.tar.gz\n{digest}  {archive.name}\n")
    return tmp_path / "www"


@pytest.fixture
def source(published: Path) -> Iterator[DownloadUrls]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SilentHandler, directory=str(published)))
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    base = f"http://127.0.0.1:{server.server_address[1]}"
    yield DownloadUrls(f"{base}/release", f"{base}/etcd")
    server.shutdown()
    serving.join()
    server.server_close()


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "into"
    folder.mkdir()
    return folder


def test_all_programs_arrive_executable(source: DownloadUrls, into: Path) -> None:
    said: list[str] = []
    release.download(into, said.append, source)
    assert {each.name: each.read_text() for each in into.iterdir()} == {name: name for name in versions.PROGRAMS}
    assert all(each.stat().st_mode & 0o111 for each in into.iterdir())
    assert "kubectl, 0 MB" in said


@pytest.mark.parametrize("file", ["kube-apiserver", f"etcd-{versions.ETCD}-linux-amd64.tar.gz"])
def test_a_file_that_is_not_what_was_published_is_refused(
    published: Path, source: DownloadUrls, into: Path, file: str
) -> None:
    next(published.rglob(file)).write_bytes(b"something else")
    with pytest.raises(WrongSum, match="not used"):
        release.download(into, print, source)


@pytest.mark.parametrize("text", ["", "<html>please log in</html>", "abc"])
def test_a_checksum_that_is_none_means_that_the_release_cannot_be_had(
    published: Path, source: DownloadUrls, into: Path, text: str
) -> None:
    """A captive portal answers everything, with a page of its own."""
    next(published.rglob("kubectl.sha256")).write_text(text)
    with pytest.raises(DownloadUnreachable):
        release.download(into, print, source)


def test_a_refused_connection_is_told(into: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(DownloadUnreachable, match="refused"):
            release.download(into, print, DownloadUrls(base, base))


def test_a_host_that_accepts_and_stays_silent_is_not_waited_for(into: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "_REACHABLE_WITHIN", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        base = f"http://127.0.0.1:{silent.getsockname()[1]}"
        begun = time.monotonic()
        with pytest.raises(DownloadUnreachable):
            release.download(into, print, DownloadUrls(base, base))
    assert time.monotonic() - begun < 5
