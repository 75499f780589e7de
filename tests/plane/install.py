"""Puts a folder into the cache all at once or not at all, once at a time on this machine."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(folder: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock that belongs to `folder` (a file next to it); `on_wait` is called once if someone else holds it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """An empty folder to fill; it becomes `folder` when the block ends well and vanishes when it does not.

    What lay at `folder` before is moved aside first, then removed. Call it under `locked`.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        yield draft
        draft.chmod(0o755)
        aside = draft.with_name(draft.name + ".old")
        if folder.exists():
            os.replace(folder, aside)  # noqa: PTH105 - Path.replace says no more
        os.replace(draft, folder)  # noqa: PTH105
        shutil.rmtree(aside, ignore_errors=True)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
