"""What a person names on the command line: `NAME`, `jobset/NAME`, `pod/NAME`, `podgroup/NAME` or `gang/NAME`."""

from dataclasses import dataclass
from enum import StrEnum

from jobset_gate.cli.exits import Exit, Failed


class What(StrEnum):
    """The kinds of things that can be asked about."""

    ANY = ""
    JOBSET = "jobset"
    POD = "pod"
    GROUP = "podgroup"


_WORDS = {
    "jobset": What.JOBSET,
    "jobsets": What.JOBSET,
    "js": What.JOBSET,
    "jobset.jobset.x-k8s.io": What.JOBSET,
    "jobsets.jobset.x-k8s.io": What.JOBSET,
    "pod": What.POD,
    "pods": What.POD,
    "po": What.POD,
    "podgroup": What.GROUP,
    "podgroups": What.GROUP,
    "pg": What.GROUP,
    "gang": What.GROUP,
    "gangs": What.GROUP,
    "group": What.GROUP,
    "groups": What.GROUP,
}


@dataclass(frozen=True, slots=True)
class Named:
    """One thing by its kind and name."""

    what: What
    name: str


def named(text: str) -> Named:
    """Raises Failed for what is no name of anything we know."""
    kind, slash, name = text.rpartition("/")
    what = _WORDS.get(kind.lower()) if slash else What.ANY
    if what is None:
        known = ", ".join(f"{it}/NAME" for it in (What.JOBSET, What.POD, What.GROUP, "gang"))
        raise Failed(f"{text}: no such kind: {kind} (known are NAME, {known})", Exit.USAGE)
    if not name:
        raise Failed(f"{text}: a name is missing", Exit.USAGE)
    return Named(what, name)
