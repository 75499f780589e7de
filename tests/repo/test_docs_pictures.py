"""Pictures are small, fit light and dark, have a description, and fetch nothing."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.repo.documents import documents, name
from tests.repo.files import ROOT, tracked

FOLDER = ROOT / "docs" / "pictures"
PICTURES = [it for it in tracked() if it.parent == FOLDER]
RECORDED = ("demo.svg",)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("picture", PICTURES, ids=name)
def test_a_picture_stands_alone(picture: Path) -> None:
    text = picture.read_text()
    assert len(text) < (40_000 if picture.name in RECORDED else 12_000)
    assert "prefers-color-scheme: dark" in text
    # The name of the format is the only address in it; references lead into the picture itself.
    assert set(re.findall(r"https?://(?!127\.0\.0\.1:)[^\s\"']+", text)) == {"http://www.w3.org/2000/svg"}
    assert re.findall(r"href|@import|@font-face|<script|<image|<foreignObject", text) == []
    assert all(it.startswith("#") for it in re.findall(r"url\(([^)]*)\)", text))


@pytest.mark.parametrize("picture", PICTURES, ids=name)
def test_a_picture_has_a_description(picture: Path) -> None:
    root = ET.fromstring(picture.read_text())  # noqa: S314 - our own file
    assert root.get("role") == "img"
    titles = {it.get("id"): it.text or "" for it in root if it.tag in (f"{SVG}title", f"{SVG}desc")}
    labels = (root.get("aria-labelledby") or "").split()
    assert labels
    assert all(titles.get(it) for it in labels)


@pytest.mark.parametrize("picture", PICTURES, ids=name)
def test_nothing_of_a_picture_lies_outside_of_it(picture: Path) -> None:
    root = ET.fromstring(picture.read_text())  # noqa: S314 - our own file
    _, _, wide, high = map(float, (root.get("viewBox") or "").split())
    for it in root.iter():
        x, y = float(it.get("x", 0)), float(it.get("y", 0))
        # A letter of 13 px is hardly wider than 7 on average.
        long = 7 * len(it.text or "") if it.tag == f"{SVG}text" else _number(it.get("width"))
        if it.tag in (f"{SVG}text", f"{SVG}rect"):
            assert 0 <= x <= x + long <= wide, (it.text, x, long)
            assert 0 <= y <= y + (_number(it.get("height")) if it.tag == f"{SVG}rect" else 0) <= high, (it.text, y)


@pytest.mark.parametrize("picture", PICTURES, ids=name)
def test_some_document_shows_it_and_says_what_is_on_it(picture: Path) -> None:
    shown = [
        words
        for document in documents()
        for words, path in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", document.read_text())
        if (document.parent / path).resolve() == picture
    ]
    assert shown
    assert all(len(words) > 30 for words in shown)


def _number(text: str | None) -> float:
    return float(text) if text else 0.0
