"""docs/reference/api.md: the field of a JobSet, what a gang consists of in a cluster, and what names a pod group."""

from collections.abc import Iterator
from typing import Final

import msgspec

from controllers.podgroups import crds
from docs.make import sentences
from docs.make.kinds import kind
from docs.make.markdown import block, code, page, paragraph, table
from jobset_gate import names
from jobset_gate.barrier.config import GroupSchedulingConfig
from jobset_gate.barrier.crd import FIELD_SCHEMA
from jobset_gate.podgroups import formats, merge
from jobset_gate.podgroups.model import FLAVOR_OF, POD_GROUP_APIS, Format
from jobset_gate.settings import DEFAULT_GROUP_WAIT_SECONDS

PARTS: Final = ("Init container", "Volume", "Path", "File", "Environment")
FIELDS: Final = {
    "minMember": "How many of its pods have to be placed together.",
    "minMembers": "How many of its pods have to be placed together.",
    "minResources": "What all of them together need; opened only when as much is free.",
    "totalResources": "What all of them together need; opened only when as much is free.",
    "scheduleTimeoutSeconds": "The limit from the opening to the minimum bound.",
}
"""What the fields of a PodGroup's spec mean; their designs print them without a sentence."""
EXAMPLE: Final = """
spec:
  groupSchedulingConfig:
    timeoutAfterSeconds: 300
    targetReplicatedJobs: [workers]
"""


def text() -> str:
    """The page."""
    documented = sentences.of(names)
    return page(
        "API",
        "`jobset_gate/barrier/config.py`, `names.py` and `groups/`",
        f"## spec.{names.CONFIG_FIELD} of a JobSet",
        paragraph(str(FIELD_SCHEMA["description"])),
        block(EXAMPLE, "yaml"),
        table(["field", "type", "meaning"], _config()),
        paragraph(
            f"No other keys, and no value that merely looks like the right type. The annotation `{names.CONFIG}` takes "
            "the same as JSON; if both are there, they have to say the same. The other annotations of a JobSet: "
            "[annotations and labels](annotations-and-labels.md)."
        ),
        "## Conditions",
        paragraph(
            f"`{names.CONDITION}` on a JobSet, `{names.POD_GROUP_CONDITION}` on a PodGroup: [conditions, Events and "
            "reasons](reasons.md)."
        ),
        "## The ConfigMap of a gang",
        paragraph(
            f"`<jobset>{names.CONFIG_MAP_SUFFIX}`, in the namespace of the JobSet and owned by it; labels "
            f"`{names.GATE}` and `{names.MANAGED_BY_LABEL}`, annotation `{names.JOBSET_UID}`."
        ),
        table(["key", "holds"], [_data(it, documented) for it in ("KEY_VERDICT", "KEY_WAITING_SINCE")]),
        "## In a gated pod",
        paragraph("Put in by the webhook when the JobSet is created, with the label and the annotation of gated pods."),
        table(["name", "is", "meaning"], _parts(documented)),
        "## Pod groups",
        paragraph(
            "Five ways to say a group, in the order in which they win. When to use which: "
            "[pod groups](../pod-groups-reference.md#formats)."
        ),
        *(part for way in Format for part in _way(way, documented)),
        "## PodGroup kinds",
        *(part for group in crds.GROUPS.values() for part in _kind(group)),
    )


MORE_KEYS: Final = {
    Format.KOORDINATOR_ANNOTATIONS: formats.KOORDINATOR_KEYS,
    Format.KOORDINATOR_POD_GROUP: formats.KOORDINATOR_POD_GROUP_KEYS,
    Format.ALIBABA: (names.ALIBABA_MINIMUM,),
}
"""In addition to the key that names the group."""


def keys(way: Format) -> list[str]:
    """The names of names.py that a way reads, the one that names the group first."""
    known = {str(getattr(names, it)): it for it in sentences.of(names)}
    return [known[it] for it in dict.fromkeys((formats.NAME_KEYS[way][1], *MORE_KEYS.get(way, ())))]


def _way(way: Format, documented: dict[str, str]) -> list[str]:
    groups = () if way is Format.KOORDINATOR_ANNOTATIONS else POD_GROUP_APIS[FLAVOR_OF[way]]
    needs = " or ".join(f"`{names.POD_GROUP}` of `{it}/{names.POD_GROUP_VERSION}`" for it in groups) or "no object"
    limit = merge.DEFAULT_WAITS.get(FLAVOR_OF[way], DEFAULT_GROUP_WAIT_SECONDS)
    own = "" if FLAVOR_OF[way] in merge.DEFAULT_WAITS else ", or `groups.waitSeconds`"
    about = f"Needs {needs}. Without a limit of its own: {int(limit)} s{own}."
    rows = [(code(str(getattr(names, it))), *_split(documented[it])) for it in keys(way)]
    return [f"### {way.value}", paragraph(about), table(["key", "is", "meaning"], rows)]


def _kind(group: str) -> list[str]:
    made = crds.manifest(group)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    spec = [(code(f"spec.{name}"), kind(it), FIELDS[name]) for name, it in made["spec"]["properties"].items()]
    status = ", ".join(f"`{it}`" for it in made["status"]["properties"])
    head = f"### {names.POD_GROUP}, {group}/{names.POD_GROUP_VERSION}"
    return [head, table(["field", "type", "meaning"], spec), paragraph(f"Status, written by the controller: {status}.")]


def _config() -> list[tuple[str, str, str]]:
    _, schemas = msgspec.json.schema_components([GroupSchedulingConfig])
    schema, documented = schemas[GroupSchedulingConfig.__name__], sentences.inherited(GroupSchedulingConfig)
    return [(code(name), kind(it), documented[name]) for name, it in schema["properties"].items()]


def _parts(documented: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    for name, text in documented.items():
        is_, colon, meaning = text.partition(": ")
        if colon and is_ in PARTS:
            yield code(str(getattr(names, name))), is_, f"{meaning[:1].upper()}{meaning[1:]}"


def _split(text: str) -> tuple[str, str]:
    is_, _, meaning = text.partition(": ")
    return is_, f"{meaning[:1].upper()}{meaning[1:]}"


def _data(name: str, documented: dict[str, str]) -> tuple[str, str]:
    text = documented[name].removeprefix("Key: ")
    return code(str(getattr(names, name))), f"{text[:1].upper()}{text[1:]}"
