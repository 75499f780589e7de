"""Gives a secret text to a library that reads files only, without a file on a disk."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def as_file(text: bytes) -> Iterator[str]:
    """A path under which this process can read the text as long as the block runs.

    On Linux it leads into anonymous memory. Elsewhere, and where a kernel refuses that, it is a file of the owner's in
    the folder for temporary files.
    """
    opened = _anonymous()
    if opened is None:
        with tempfile.NamedTemporaryFile(prefix="jobset-gate-") as file:
            file.write(text)
            file.flush()
            yield file.name
        return
    try:
        os.write(opened, text)
        yield f"/proc/self/fd/{opened}"
    finally:
        os.close(opened)


def _anonymous() -> int | None:
    try:
        return os.memfd_create("jobset-gate", os.MFD_CLOEXEC)
    except (AttributeError, OSError):
        return None
