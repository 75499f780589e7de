"""docs/design: codes lead to headings, walks lead over files that exist, and every promise has its test."""

import ast
import re
from functools import cache
from pathlib import Path

from tests.repo.files import ROOT, tracked

DESIGN = ROOT / "docs" / "design"
CITED = re.compile(r"\b[AGK]\d{1,2}(?:\.\d)?\b")
PARENTHESES = re.compile(r"\(([^()]*)\)")
HEADING = re.compile(r"^#+ ([AGK][\d.]*\d)\b", re.MULTILINE)
SOURCES = {".py", ".sh", ".yaml", ".tpl", ".md"}
WALKS = {
    "Walk: from a pod event to the ConfigMap": 8,
    "Walk: from the creation of a start group's pod to its release": 9,
    "Walk: from the admission of a grouped pod to its ungating": 12,
    "Walk: `kubectl jobset-gate why NAME`": 6,
}
"""The most files of each."""
PROMISE = re.compile(r"^\| (\([AGK][\d.]+\)) \| (.+) \| `(tests/[\w/]+\.py)::(\w+)` \|$")


def cited(text: str) -> set[str]:
    """Codes within parentheses: elsewhere A1 may be a cell, an accelerator or a node."""
    return {code for part in PARENTHESES.findall(text) for code in CITED.findall(part)}


def headings() -> list[str]:
    return [code for page in sorted(DESIGN.glob("*.md")) for code in HEADING.findall(page.read_text())]


def test_every_code_that_is_cited_has_its_heading_and_no_heading_stands_twice() -> None:
    known = headings()
    assert len(known) == len(set(known)) > 15
    sources = (path for path in tracked() if path.suffix in SOURCES and DESIGN not in path.parents)
    lost = {f"{path.relative_to(ROOT)}: {code}" for path in sources for code in cited(path.read_text()) - set(known)}
    assert sorted(lost) == []


def test_the_walks_lead_over_files_that_exist() -> None:
    text = (DESIGN / "architecture.md").read_text()
    for title, most in WALKS.items():
        _, found, rest = text.partition(f"\n## {title}\n")
        assert found, title
        files = re.findall(r"^\d+\. `([^`]+)`", rest.partition("\n## ")[0], re.MULTILINE)
        assert [file for file in files if not (ROOT / file).is_file()] == []
        assert 3 < len(files) <= most, title
    packages = re.findall(r"^\| .* \| `([\w/.]+)`", text, re.MULTILINE)
    assert [one for one in packages if not (ROOT / one).exists()] == []


@cache
def names_in(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_section_of_the_contracts_has_promises_and_each_names_a_test_that_exists() -> None:
    rows = [found for line in (DESIGN / "promises.md").read_text().splitlines() if (found := PROMISE.match(line))]
    lost = [
        f"{promise}: {file}::{name}"
        for _, promise, file, name in (row.groups() for row in rows)
        if not (ROOT / file).is_file() or name not in names_in(ROOT / file)
    ]
    assert lost == []
    assert {row[1].strip("()") for row in rows} >= set(headings()) - {"A1", "A6"}
    assert len(rows) > 150
