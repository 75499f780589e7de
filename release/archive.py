"""Archives whose bytes depend on names and contents alone."""

import gzip
import io
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path


def compressed(data: bytes) -> bytes:
    """Gzip without a name and a time."""
    return gzip.compress(data, compresslevel=9, mtime=0)


def pack(file: Path, members: Iterable[tuple[str, Path]], *, epoch: int) -> None:
    """Writes a .tar.gz of files (name in the archive, path), sorted, owned by nobody, dated `epoch` (Unix seconds).

    Of a file's mode only whether it may be executed is kept; symbolic links stay links.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, path in sorted(members):
            info = tarfile.TarInfo(name)
            info.mtime = epoch
            if path.is_symlink():
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, str(path.readlink()), 0o777
                tar.addfile(info)
                continue
            data = path.read_bytes()
            info.size, info.mode = len(data), 0o755 if path.stat().st_mode & 0o100 else 0o644
            tar.addfile(info, io.BytesIO(data))
    file.write_bytes(compressed(buffer.getvalue()))


def files(folder: Path) -> list[tuple[str, Path]]:
    """All files and links below a folder, as `pack` takes them."""
    return [(str(it.relative_to(folder)), it) for it in folder.rglob("*") if it.is_symlink() or it.is_file()]


def repack(archive: Path, *, epoch: int) -> None:
    """The same .tar.gz as `pack` writes it; directories are left out."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
        pack(archive, files(Path(folder)), epoch=epoch)
