"""docs/reference/annotations-and-labels.md: every key, who writes it and who reads it, as names.py says."""

import re
from dataclasses import dataclass
from typing import Final

from docs.make import sentences
from docs.make.markdown import code, page, paragraph, table
from jobset_gate import names

KINDS: Final = ("Annotation", "Label", "Scheduling gate")
_SAID: Final = re.compile(rf"^(?P<kind>{'|'.join(KINDS)}) on (?P<on>[^:]+?)(?:[:;] (?P<meaning>.+?)|\. ?)$")
_PARTS: Final = re.compile(r"^(.*?)(?: Written by (.*?))?(?: Read by (.*?))?$")


@dataclass(frozen=True, slots=True)
class Said:
    """One key."""

    key: str
    kind: str
    on: str
    meaning: str
    written: str
    read: str


def text() -> str:
    """The page."""
    all_of_them = documented()
    ours = [it for it in all_of_them if it.key.startswith(f"{names.DOMAIN}/")]
    designs = [it for it in all_of_them if not it.written and it not in ours]
    rest = [it for it in all_of_them if it not in ours and it not in designs]
    head = ["key", "is", "meaning", "written by", "read by"]
    on_jobsets = [it for it in ours if it.on == "a JobSet"]
    on_pods = [it for it in ours if it.key in (names.START_GROUP, names.START_SIZE)]
    by_people = [*on_jobsets, *on_pods]
    return page(
        "Annotations and labels",
        "`jobset_gate/names.py`",
        "## For people to write, on a JobSet",
        _table(head, on_jobsets),
        "## For people to write, on the pods of a start group",
        paragraph("Those of a JobSet may be there, too."),
        _table(head, on_pods),
        "## That jobset-gate writes",
        paragraph("No other client should write them. They are listed so that everything in a cluster is explained."),
        _table(head, [it for it in ours if it not in by_people]),
        "## Of the four designs of pod groups",
        paragraph("Written by the maker of the pods. Which belong to which format: [API](api.md#pod-groups)."),
        table(["key", "is", "meaning"], [(code(it.key), f"{it.kind} on {it.on}", it.meaning) for it in designs]),
        "## Of others, that count here",
        _table(head, rest),
    )


def documented() -> list[Said]:
    """All that names.py calls an annotation, a label or a scheduling gate."""
    return [
        said(str(getattr(names, name)), text) for name, text in sentences.of(names).items() if text.startswith(KINDS)
    ]


def said(key: str, text: str) -> Said:
    """The parts of a sentence such as `Label on pods: what it means. Written by x. Read by y.`"""
    rest, written, read = (part or "" for part in re.match(_PARTS, text).groups())  # type: ignore[union-attr]
    found = re.match(_SAID, rest.strip())
    if found is None:
        raise ValueError(f"names.py does not say of {key} what it is on and what it means: {text}")
    meaning = sentences.sentence(found["meaning"] or "")
    return Said(key, found["kind"], found["on"], f"{meaning[:1].upper()}{meaning[1:]}", _bare(written), _bare(read))


def _bare(text: str) -> str:
    return text.rstrip(".")


def _table(head: list[str], found: list[Said]) -> str:
    return table(head, [(code(it.key), f"{it.kind} on {it.on}", it.meaning, it.written, it.read) for it in found])
