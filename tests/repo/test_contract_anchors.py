"""Codes such as (A6.1) and (G4) in comments, docstrings and tests lead to a heading of docs/design."""

import re

from tests.repo.files import ROOT, tracked

CITED = re.compile(r"\b[AG]\d{1,2}(?:\.\d)?\b")
PARENTHESES = re.compile(r"\(([^()]*)\)")
HEADING = re.compile(r"^#+ ([AG][\d.]*\d)\b", re.MULTILINE)
DESIGN = ROOT / "docs" / "design"
SOURCES = {".py", ".sh", ".yaml", ".tpl", ".md"}


def cited(text: str) -> set[str]:
    """Codes within parentheses: elsewhere A1 may be a cell, an accelerator or a node."""
    return {code for part in PARENTHESES.findall(text) for code in CITED.findall(part)}


def headings() -> list[str]:
    return [code for page in sorted(DESIGN.glob("*.md")) for code in HEADING.findall(page.read_text())]


def test_every_code_that_is_cited_has_its_heading() -> None:
    known = set(headings())
    sources = (path for path in tracked() if path.suffix in SOURCES and DESIGN not in path.parents)
    lost = {f"{path.relative_to(ROOT)}: {code}" for path in sources for code in cited(path.read_text()) - known}
    assert sorted(lost) == []


def test_no_heading_stands_twice() -> None:
    found = headings()
    assert len(found) == len(set(found)) > 15


def test_a_code_without_a_heading_would_be_seen() -> None:
    assert cited("one (A6.1), two (G3: three, A10, A" + "99), A5 outside") == {"A6.1", "G3", "A10", "A99"}
