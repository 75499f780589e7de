"""docs/quickstart.md as a user types it: its commands, and where they are typed."""

import re
import shutil
from pathlib import Path
from typing import Final

from tests.repo.documents import blocks
from tests.repo.files import ROOT

DOCUMENT: Final = ROOT / "docs" / "quickstart.md"
KUBECONFIG: Final = "kubeconfig"
IMAGE: Final = re.compile(r"busybox:[0-9.]+")
NAMESPACE: Final = re.compile(r"\bsmall\b")
"""The one that the document makes."""
ELSEWHERE: Final = ("make ", ".venv/bin/jobset-gate demo ")
"""These make a .venv, a demo or a cluster, or stay until Ctrl-C: tried by other tests."""


def typed(text: str) -> list[str]:
    """Line by line, in order, without those for make."""
    lines = (line for block in blocks(text, "sh") for line in block.replace("\\\n", " ").splitlines())
    return [line for line in lines if line.strip() and not line.startswith((*ELSEWHERE, "#"))]


def furnish(place: Path, image: str, kubeconfig: str) -> None:
    """The folder gets what a clone has and people type about, with an image that is on the nodes, and a kubeconfig."""
    shutil.copy(kubeconfig, place / KUBECONFIG)
    shutil.copytree(ROOT / "examples", place / "examples")
    for file in (place / "examples").rglob("*.yaml"):
        file.write_text(IMAGE.sub(image, file.read_text()))
    (place / ".venv").symlink_to(ROOT / ".venv")


def here(line: str, namespace: str, image: str) -> str:
    """With a namespace that no other run makes; the document's right image, where it says it, is the nodes'."""
    found = IMAGE.search((ROOT / "examples" / "first-gang.yaml").read_text())
    assert found
    shown = image.replace("/", r"\/") if line.startswith("sed ") else image
    return NAMESPACE.sub(namespace, line).replace(found.group(), shown)
