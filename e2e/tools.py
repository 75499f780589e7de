"""docker, kind and a node image: those of this machine, or made by e2e/airgap where nothing can be pulled."""

import os
import shutil
from pathlib import Path
from typing import Final

from e2e import commands
from jobset_gate.settings import DEFAULT_IMAGE

AIRGAP: Final = Path(__file__).with_name("airgap")
SETUP_SECONDS: Final = 2400.0
PULL_SECONDS: Final = 600.0


def provide() -> None:
    """Afterwards docker, kind and kubectl are there, by way of this process's environment. Raises commands.Failed."""
    if _at_hand():
        return
    if not (AIRGAP / "setup").exists() or os.geteuid() != 0:
        raise commands.CommandFailed("docker, kind and kubectl are needed; as root on Debian `make airgap` makes them")
    print("tools: making docker, kind and a node image where nothing can be pulled (a quarter of an hour)", flush=True)
    code = commands.show(str(AIRGAP / "setup"), seconds=SETUP_SECONDS)
    if code != 0:
        raise commands.CommandFailed(f"{AIRGAP / 'setup'} ended with {code}")
    adopt()


def adopt() -> None:
    """What e2e/airgap/env.sh sets becomes this process's environment."""
    said = commands.run("bash", "-c", f". {AIRGAP / 'env.sh'} >/dev/null && env -0")
    for line in said.split("\0"):
        key, found, value = line.partition("=")
        if found:
            os.environ[key] = value


def _at_hand() -> bool:
    if any(shutil.which(tool) is None for tool in ("docker", "kind", "kubectl")):
        return False
    if not commands.works("docker", "info", seconds=30):
        return False
    node = os.environ.get("KIND_NODE_IMAGE")
    if node and commands.works("docker", "image", "inspect", node):
        return True
    # Where the barrier's image can be had, kind's own node image can be had, too.
    return commands.works("docker", "pull", "--quiet", node or DEFAULT_IMAGE, seconds=PULL_SECONDS)
