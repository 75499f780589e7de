"""Findings as text for people and as a document for programs."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from jobset_gate.cli.doctor.findings import Finding, FindingLevel
from jobset_gate.cli.printers.terminal import TerminalStyle
from jobset_gate.objects import terminal_text

_STYLES: Final = {
    FindingLevel.OK: "good",
    FindingLevel.WARNING: "wait",
    FindingLevel.ERROR: "bad",
    FindingLevel.UNKNOWN: "dim",
}
_WIDTH: Final = max(len(it) for it in FindingLevel) + 2
_WORST_FIRST: Final = (FindingLevel.ERROR, FindingLevel.WARNING, FindingLevel.UNKNOWN, FindingLevel.OK)


def text(findings: Sequence[Finding], look: TerminalStyle) -> str:
    """One paragraph for each, and how many there are of each level."""
    lines = [line for it in findings for line in _lines(it, look)]
    counts = Counter(it.level for it in findings)
    return "\n".join([*lines, "", ", ".join(_count(counts[it], it) for it in _WORST_FIRST if counts[it]) + "."]) + "\n"


def document(findings: Sequence[Finding]) -> dict[str, Any]:
    """With all levels counted, those of which there are none, too."""
    counts = Counter(it.level for it in findings)
    return {
        "kind": "Diagnosis",
        "summary": {str(level): counts[level] for level in _WORST_FIRST},
        "findings": [{"level": str(it.level), "what": it.what, "why": it.why, "remedy": it.remedy} for it in findings],
    }


def _lines(finding: Finding, look: TerminalStyle) -> list[str]:
    told = _flat(finding.what) + (f": {_flat(finding.why)}" if finding.why else "")
    remedy = [f"Remedy: {_flat(finding.remedy)}"] if finding.remedy else []
    first, *rest = [line for it in (told, *remedy) for line in _wrapped(it, look)]
    level = look.paint(_STYLES[finding.level], finding.level) + " " * (_WIDTH - len(finding.level))
    return [level + first, *(" " * _WIDTH + line for line in rest)]


def _wrapped(line: str, look: TerminalStyle) -> list[str]:
    if look.width is None or look.width <= 2 * _WIDTH:
        return [line]
    return textwrap.wrap(line, look.width - _WIDTH, break_long_words=False, break_on_hyphens=False)


def _flat(words: str) -> str:
    """What others say may have line breaks and controls."""
    return terminal_text.line(words)


def _count(count: int, level: FindingLevel) -> str:
    plural = "s" if count != 1 and level in (FindingLevel.ERROR, FindingLevel.WARNING) else ""
    return f"{count} {level}{plural}"
