"""One language: none of the words of old_words.tsv stands in the project's files."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.repo.files import ROOT, tracked

GLOSSARY = Path(__file__).with_name("old_words.tsv")
TEXTS = {".py", ".sh", ".md", ".yaml", ".yml", ".tpl", ".tsv", ".toml", ".html", ".css", ".js", ".txt", ""}
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
ON_THE_WIRE = re.compile(r'"told"|jobset-gate\.dev/canary|\bREASON_NOT_HEEDED\b|\bNotHeeded\b')
"""Values of labels of metrics, a label, and the reason of an Event with its constant."""
NOT_OURS = {
    "docs/reference/",  # generated: its sources are read
    "tests/repo/test_old_words.py",
    "tests/repo/old_words.tsv",
    "CHANGELOG.md",  # what was released keeps its words
    "LICENSE",
}


@cache
def glossary() -> dict[str, str]:
    rows = (line.split("\t") for line in GLOSSARY.read_text().splitlines() if line and not line.startswith("#"))
    return {row[0]: row[1] for row in rows}


@cache
def _phrases() -> re.Pattern[str]:
    """Phrases, whatever separates their words, and identifiers."""
    found = [old for old in glossary() if " " in old or any(letter.isupper() for letter in old)]
    return re.compile("|".join(rf"(?<![A-Za-z]){re.sub(' ', '[ _]', old)}(?![a-z])" for old in found), re.IGNORECASE)


def old_words(text: str) -> Iterator[tuple[int, str]]:
    """(line, old word), each once a line."""
    known = glossary()
    for number, line in enumerate(text.splitlines(), start=1):
        words = {part.lower() for part in PARTS.findall(ON_THE_WIRE.sub("", line))} & known.keys()
        words |= {found[0].replace("_", " ") for found in _phrases().finditer(line)}
        yield from ((number, word) for word in sorted(words))


def scanned(path: Path) -> bool:
    name = str(path.relative_to(ROOT))
    return path.suffix in TEXTS and not name.startswith(tuple(NOT_OURS))


def test_no_file_uses_an_old_word() -> None:
    hits = [
        f"{path.relative_to(ROOT)}:{number}: {word}: write {_instead(word)}"
        for path in tracked()
        if scanned(path)
        for number, word in old_words(path.read_text(errors="ignore"))
    ]
    assert not hits, f"{len(hits)} old words:\n" + "\n".join(hits)


def _instead(word: str) -> str:
    by_case = {old.lower(): new for old, new in glossary().items()}
    return by_case.get(word.lower(), "another word")
