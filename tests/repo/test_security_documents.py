"""What the documents say of tests and files is there."""

import re
from pathlib import Path

import pytest

from tests.repo.files import ROOT

DOCUMENTS = sorted((ROOT / "docs").glob("*.md"))
STATES = {"proven", "checked", "by hand"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_test_that_a_document_names_exists(document: Path) -> None:
    named = re.findall(r"`((?:tests|e2e|examples|release|charts)/[\w./-]+)`", document.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_of_a_document_leads_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_each_row_of_the_operations_says_how_far_it_is_shown_and_where() -> None:
    rows = [line for line in (ROOT / "docs" / "operations.md").read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    found = [row for row in cells if row[0] != "row"]
    assert len(found) > 30
    assert [row for row in found if row[1] not in STATES or not re.search(r"`(tests|e2e)/", row[2])] == []
    # What falls short of "proven" for want of something says of what; "by hand" always does.
    assert [row for row in found if row[1] == "by hand" and not row[3]] == []
