"""Decisions have a number, a status, and say what was to be decided, what was, and what it costs."""

import re
from pathlib import Path

import pytest

from tests.repo.documents import documents, name
from tests.repo.files import ROOT

PAGES = [it for it in documents() if it.parent == ROOT / "docs" / "adr"]
STATUS = re.compile(r"^\*\*Status:\*\* (?:accepted|replaced by \[\d{4}\]\([\w.-]+\))$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_decision_is_whole(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# {page.name[:4]}: ")
    assert len(STATUS.findall(text)) == 1
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    parts = re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]
    assert all(len(part.split()) > 30 for part in parts)


def test_numbers_follow_each_other() -> None:
    assert [it.name[:4] for it in PAGES] == [f"{number:04}" for number in range(1, len(PAGES) + 1)]
    assert len(PAGES) >= 8


def test_the_index_calls_each_as_it_calls_itself() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    for page in PAGES:
        number, _, title = page.read_text().splitlines()[0].removeprefix("# ").partition(": ")
        assert f"* [{number}](adr/{page.name}) {title}\n" in index
