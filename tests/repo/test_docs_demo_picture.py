"""The picture of the demo shows what the demo says."""

import re
from xml.etree import ElementTree as ET

from docs.make.picture.__main__ import PICTURE, played

SVG = "{http://www.w3.org/2000/svg}"
BARS = "━╸╺"


def lines(picture: str) -> list[str]:
    """What a reader sees in the end: the rows that nothing takes away."""
    root = ET.fromstring(picture)  # noqa: S314 - our own file
    style = root.findtext(f"{SVG}style") or ""
    gone = set(re.findall(r"\.(k\d+)", (re.findall(r"^(.*)\{opacity:0\}$", style, re.MULTILINE) or [""])[-1]))
    rows = [it for it in root.iter(f"{SVG}g") if not gone & set((it.get("class") or "").split())]
    return [" ".join(it.text or "" for it in row) for row in rows]


def clauses(rows: list[str]) -> list[str]:
    """The parts of sentences with numbers masked, wherever a terminal has broken its lines. Not the bars, nor the words
    of the verdict on who is missing: on a slow machine others may not have started either.
    """
    text = re.sub(r"\s+", "", "".join(it for it in rows if not set(BARS) & set(it)))
    verdict = re.sub(r"(Timedoutafter).*(Itsbarriers)", r"\1;\2", text)
    masked = re.sub(r"before|\d+msafter", "#", verdict)
    return re.split(r"[;:.,]+", re.sub(r"[\d#]+(?:\.\d+)?", "#", masked))


def test_the_picture_shows_what_the_demo_says() -> None:
    fresh = played("--jobs", "2", "--pods", "2", "--seconds", "0.5")
    now = [" ".join(run.text for run in row) for row in fresh[-1].rows]
    assert clauses(lines(PICTURE.read_text())) == clauses(now), "the demo has changed: run `make picture`"
