"""Programs of straw: they know their version, and an environment has them on its PATH."""

from pathlib import Path

SYSTEM = "/usr/bin:/bin"


def program(path: Path, says: str) -> Path:
    """An executable that says this, whatever it is asked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


def script(path: Path, text: str) -> Path:
    """An executable shell script."""
    program(path, "")
    path.write_text(f"#!/bin/sh\n{text}\n")
    return path


def environment(home: Path, **more: str) -> dict[str, str]:
    """Programs in `home/bin` come first."""
    return {"HOME": str(home), "PATH": f"{home}/bin:{SYSTEM}", **more}
