"""Every link of a document leads to a file that exists, and to a heading in it; no page is left out of the index."""

import re
from pathlib import Path

import pytest

from tests.repo.documents import anchors, documents, name, prose
from tests.repo.files import ROOT

LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")


@pytest.mark.parametrize("document", documents(), ids=name)
def test_every_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    broken = []
    for path, heading in LINK.findall(prose(document)):
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (heading and target.suffix == ".md" and heading not in anchors(target)):
            broken.append(f"{path}#{heading}")
    assert broken == []


@pytest.mark.parametrize("document", documents(), ids=name)
def test_every_test_and_example_that_is_named_exists(document: Path) -> None:
    named = re.findall(r"`((?:tests|e2e|examples|release|jobset_gate)/[\w./-]+)`", document.read_text())
    assert [it for it in named if not (ROOT / it).exists()] == []


def test_the_index_names_every_page_of_the_folder() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / path).resolve() for path, _ in LINK.findall(index.read_text()) if path}
    pages = {it for it in documents() if ROOT / "docs" in it.parents and it != index}
    assert pages - linked == set()


def test_a_broken_link_would_be_seen() -> None:
    assert LINK.findall("[a](b.md#c) [d](#e) [f](https://g.example/h) [i](j.md)") == [
        ("b.md", "c"),
        ("", "e"),
        ("j.md", ""),
    ]
