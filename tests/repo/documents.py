"""The documents for people, and what is written in code within them."""

import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.repo.files import ROOT, tracked

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@cache
def documents() -> tuple[Path, ...]:
    """README, changelog, the chart's README and everything below docs/."""
    own = {ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "charts/jobset-gate/README.md", ROOT / "e2e/README.md"}
    found = (it for it in tracked() if it.suffix == ".md" and (it in own or ROOT / "docs" in it.parents))
    return tuple(sorted(found))


def name(document: Path) -> str:
    """`docs/howto/upgrade.md`."""
    return str(document.relative_to(ROOT))


def prose(document: Path) -> str:
    """Without blocks of code."""
    return FENCE.sub("", document.read_text())


def blocks(text: str, *languages: str) -> list[str]:
    """The blocks of code in one of these languages."""
    return [textwrap.dedent(body) for _, language, body in FENCE.findall(text) if language in languages]


def commands(text: str) -> Iterator[str]:
    """Lines that begin as our program: in blocks of shell or of nothing, in spans of code, behind pipes."""
    for block in blocks(text, "sh", "shell", ""):
        joined = block.replace("\\\n", " ")
        yield from (part for line in joined.splitlines() for part in re.split(r"\s*(?:\||&&|;|#)\s*", line.strip("$ ")))
    yield from re.findall(r"`([^`\n]+)`", FENCE.sub("", text))


def anchors(document: Path) -> set[str]:
    """Those that GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", prose(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", it.lower()).strip().replace(" ", "-") for it in headings}
