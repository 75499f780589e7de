"""docs/reference/reasons.md: conditions, Events and reasons, as names.py says."""

import re
from typing import Final

from docs.make import sentences
from docs.make.markdown import code, page, paragraph, table
from jobset_gate import names
from jobset_gate.barrier.model import PendingReason
from jobset_gate.explain.model import GangState
from jobset_gate.podgroups.status import Phase

_OF: Final = re.compile(r"^Of (.+?): (.+)$")


def text() -> str:
    """The page."""
    return page(
        "Conditions, Events and reasons",
        "`jobset_gate/names.py`, `model.py` and `explained.py`",
        paragraph("What to do about each: [troubleshooting](../troubleshooting.md#reasons-and-states)."),
        "## Conditions",
        table(["type", "meaning"], _conditions()),
        "## Reasons of conditions and Events",
        paragraph(
            "Each Event is written once for each generation of a gang or a group; its source is "
            f"`{names.PROGRAM}`. A reason of a pod group is that of its condition, where its kind has conditions, "
            "and of the command line."
        ),
        table(["reason", "of", "meaning"], [(code(word), of, meaning) for word, of, meaning in reasons()]),
        "## States of a gang",
        paragraph("The `state` of `why`, `describe` and the status page."),
        _members(GangState),
        "## Why a pod is missing",
        _members(PendingReason),
        "## Phases of a pod group",
        paragraph("In the status of a PodGroup that has phases, in the command line, and on the status page."),
        _members(Phase),
    )


def reasons() -> list[tuple[str, str, str]]:
    """(reason, of what, meaning) of each; raises ValueError where names.py does not say."""
    documented = sentences.of(names)
    found = []
    for name in (it for it in vars(names) if it.startswith("REASON_")):
        parts = _OF.match(documented.get(name, ""))
        if parts is None:
            raise ValueError(f"names.py does not say of what {name} is the reason, and what it means")
        of, meaning = parts.groups()
        found.append((str(getattr(names, name)), _upper(of), _upper(meaning)))
    return found


def _conditions() -> list[tuple[str, str]]:
    documented = sentences.of(names)
    return [(code(str(getattr(names, name))), documented[name]) for name in ("CONDITION", "POD_GROUP_CONDITION")]


def _members(enum: type[GangState] | type[PendingReason] | type[Phase]) -> str:
    documented = sentences.of(enum)
    return table(["word", "meaning"], [(code(it.value), documented[it.name]) for it in enum])


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
