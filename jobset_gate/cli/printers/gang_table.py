"""Gangs as a table, in the style of kubectl: JobSets and pod groups in the same words."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jobset_gate.barrier import messages
from jobset_gate.cli.printers.columns import aligned
from jobset_gate.cli.printers.pod_group_table import age
from jobset_gate.explain.model import Explanation, GangState
from jobset_gate.explain.text import format_duration
from jobset_gate.objects import terminal_text

NOTHING = "-"


@dataclass(frozen=True, slots=True)
class GangItem:
    """One of them; `created` in seconds, 0 if it is not known."""

    explanation: Explanation
    created: float
    design: str = ""
    """The design of a group: two designs may have groups of one name."""


@dataclass(frozen=True, slots=True)
class GangColumns:
    """Which columns there are."""

    namespaces: bool = False
    kinds: bool = False
    wide: bool = False
    headers: bool = True


def table(gangs: Sequence[GangItem], look: GangColumns) -> str:
    """One line for each, under headers if they are wanted; "" without any."""
    if not gangs:
        return ""
    lines = [titles(look)] if look.headers else []
    lines += [row(it, look) for it in gangs]
    return "".join(line + "\n" for line in aligned(lines))


def titles(look: GangColumns) -> list[str]:
    """The headers."""
    cells = [("NAMESPACE", look.namespaces), ("KIND", look.kinds)]
    cells += [(it, True) for it in ("NAME", "STATE", "STARTED", "LEFT", "MISSING", "AGE")]
    cells += [(it, look.wide) for it in ("TIMEOUT", "MESSAGE")]
    return [title for title, shown in cells if shown]


def row(gang: GangItem, look: GangColumns) -> list[str]:
    """Its cells, as `titles` has them."""
    it = gang.explanation
    cells = [
        (it.namespace, look.namespaces),
        (it.kind, look.kinds),
        (it.name, True),
        (str(it.state), True),
        (started(it), True),
        (NOTHING if it.left is None else format_duration(it.left), True),
        (missing(it), True),
        (age(it.now - gang.created) if gang.created else "<unknown>", True),
        (NOTHING if it.timeout is None else format_duration(it.timeout), look.wide),
        (message(it), look.wide),
    ]
    return [cell for cell, shown in cells if shown]


def started(it: Explanation) -> str:
    """`297/300`; `?/300` where pods may not be read."""
    return f"{'?' if it.started is None else it.started}/{it.expected or '?'}"


def missing(it: Explanation) -> str:
    """`2 Unscheduled,1 ImagePull`: without blanks around commas, so that it stays one column for eyes."""
    counts: Counter[str] = messages.parse_missing(it.message) if it.state == GangState.TIMED_OUT else Counter()
    for lack in it.lacks:
        counts[lack.reason] += lack.count
    return ",".join(f"{many} {why}" for why, many in counts.most_common()) or NOTHING


def message(it: Explanation) -> str:
    """Its own sentence; else the words of what it waits for longest."""
    words = it.message or next((lack.message for lack in it.lacks if lack.message), "")
    return terminal_text.line(words) or NOTHING
