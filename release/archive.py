"""Archives whose bytes depend on names and contents alone."""

import gzip
import io
import tarfile
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


def files(folder: Path, prefix: str = "") -> list[tuple[str, Path]]:
    """All files and links below a folder, as `pack` takes them."""
    return [
        (f"{prefix}{path.relative_to(folder)}", path)
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    ]


def repack(archive: Path, *, epoch: int) -> None:
    """The same .tar.gz with its members sorted, owned by nobody, and dated `epoch`; directories are left out."""
    with tarfile.open(archive) as tar:
        found = [(one, tar.extractfile(one).read()) for one in tar.getmembers() if one.isfile()]  # type: ignore[union-attr]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for member, data in sorted(found, key=lambda it: it[0].name):
            info = tarfile.TarInfo(member.name)
            info.size, info.mode, info.mtime = len(data), member.mode, epoch
            tar.addfile(info, io.BytesIO(data))
    archive.write_bytes(compressed(buffer.getvalue()))
