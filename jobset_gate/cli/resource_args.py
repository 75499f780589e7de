"""What a person names on the command line: `NAME`, `jobset/NAME`, `pod/NAME`, `podgroup/NAME` or `gang/NAME`."""

from dataclasses import dataclass
from enum import StrEnum

from jobset_gate.cli.exits import CommandError, ExitCode


class ResourceKind(StrEnum):
    """The kinds of things that can be asked about."""

    ANY = ""
    JOBSET = "jobset"
    POD = "pod"
    POD_GROUP = "podgroup"


_KINDS = {
    "jobset": ResourceKind.JOBSET,
    "jobsets": ResourceKind.JOBSET,
    "js": ResourceKind.JOBSET,
    "jobset.jobset.x-k8s.io": ResourceKind.JOBSET,
    "jobsets.jobset.x-k8s.io": ResourceKind.JOBSET,
    "pod": ResourceKind.POD,
    "pods": ResourceKind.POD,
    "po": ResourceKind.POD,
    "podgroup": ResourceKind.POD_GROUP,
    "podgroups": ResourceKind.POD_GROUP,
    "pg": ResourceKind.POD_GROUP,
    "gang": ResourceKind.POD_GROUP,
    "gangs": ResourceKind.POD_GROUP,
    "group": ResourceKind.POD_GROUP,
    "groups": ResourceKind.POD_GROUP,
}


@dataclass(frozen=True, slots=True)
class ResourceArgument:
    """One thing by its kind and name."""

    kind: ResourceKind
    name: str


def parse_resource(text: str) -> ResourceArgument:
    """Raises Failed for what is no name of anything we know."""
    kind, slash, name = text.rpartition("/")
    what = _KINDS.get(kind.lower()) if slash else ResourceKind.ANY
    if what is None:
        known = ", ".join(
            f"{it}/NAME" for it in (ResourceKind.JOBSET, ResourceKind.POD, ResourceKind.POD_GROUP, "gang")
        )
        raise CommandError(f"{text}: no such kind: {kind} (known are NAME, {known})", ExitCode.USAGE)
    if not name:
        raise CommandError(f"{text}: a name is missing", ExitCode.USAGE)
    return ResourceArgument(what, name)
