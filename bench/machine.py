"""On what machine and with what versions the figures were made: without that they mean little."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PACKAGES = ("aiohttp", "msgspec", "kubernetes-asyncio", "prometheus-client")


def facts() -> dict[str, Any]:
    """For the head of a report."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def line(found: dict[str, Any]) -> str:
    """The same for people."""
    versions = ", ".join(f"{name} {version}" for name, version in found["packages"].items())
    return (
        f"{found['cores']} cores of {found['processor']}, load {found['load']} at the start, {found['system']}\n"
        f"Python {found['python']}, {versions}"
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    for text in info.read_text().splitlines() if info.exists() else ():
        if text.startswith("model name"):
            return text.partition(":")[2].strip()
    return platform.processor() or platform.machine()
