"""The five formats in which pods and PodGroups describe a group, parsed to one model with errors as field paths (G1).

| format                    | the pod says             | the PodGroup says                          |
|---------------------------|--------------------------|--------------------------------------------|
| `koordinator-annotations` | all of it, annotations   | nothing                                    |
| `koordinator-podgroup`    | its name, a label        | as scheduler-plugins, and annotations      |
| `scheduler-plugins`       | its name, a label        | minMember, minResources, a timeout         |
| `alibaba`                 | name and minimum, labels | nothing                                    |
| `kep-24`                  | its name, an annotation  | minMembers, totalResources                 |
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from jobset_gate import names
from jobset_gate.objects.field_error import CauseType, FieldError, child_path
from jobset_gate.objects.unstructured import Json, as_map, as_text, nested
from jobset_gate.podgroups.fields import FieldReader
from jobset_gate.podgroups.model import (
    FLAVOR_OF,
    Flavor,
    Format,
    GroupSpec,
    Membership,
    PodGroupKey,
    PodGroupSource,
    RawMetadata,
    group_label,
)

ALL_FORMATS: Final = frozenset(Format)

NAME_KEYS: Final[Mapping[Format, tuple[str, str]]] = MappingProxyType(
    {
        Format.KOORDINATOR_ANNOTATIONS: ("annotations", names.KOORDINATOR_NAME),
        Format.KOORDINATOR_POD_GROUP: ("labels", names.KOORDINATOR_LABEL),
        Format.SCHEDULER_PLUGINS: ("labels", names.PLUGINS_NAME),
        Format.ALIBABA: ("labels", names.ALIBABA_NAME),
        Format.KEP_24: ("annotations", names.KEP24_NAME),
    }
)
"""Whether a label or an annotation names the group, and which."""
_NAMES: Final = frozenset(key for _, key in NAME_KEYS.values())

_Fields = Mapping[str, tuple[str, Callable[[FieldReader, str], Any]]]
"""Of GroupSpec: the key of each in a source, and how it is read."""

_ON_BOTH: Final[_Fields] = {
    "total": (names.KOORDINATOR_TOTAL, FieldReader.count),
    "mode": (names.KOORDINATOR_MODE, FieldReader.mode),
    "gangs": (names.KOORDINATOR_GANGS, FieldReader.gangs),
}
"""Annotations on Koordinator's PodGroups, whose spec has no field for them, and on pods."""
_KOORDINATOR: Final[_Fields] = {
    "minimum": (names.KOORDINATOR_MINIMUM, FieldReader.count),
    "total": _ON_BOTH["total"],
    "wait": (names.KOORDINATOR_WAIT, FieldReader.duration),
    **_ON_BOTH,
}
_ALIBABA: Final[_Fields] = {"minimum": (names.ALIBABA_MINIMUM, FieldReader.required_count)}
_PLUGINS_SPEC: Final[_Fields] = {
    "minimum": ("minMember", FieldReader.required_integer),
    "wait": ("scheduleTimeoutSeconds", FieldReader.seconds),
    "resources": ("minResources", FieldReader.quantities),
}
_KEP24_SPEC: Final[_Fields] = {
    "minimum": ("minMembers", FieldReader.required_integer),
    "resources": ("totalResources", FieldReader.quantities),
}
_SPECS: Final[Mapping[str, _Fields]] = MappingProxyType(
    {names.KEP24_GROUP: _KEP24_SPEC, names.PLUGINS_GROUP: _PLUGINS_SPEC, names.SIGS_GROUP: _PLUGINS_SPEC}
)
"""By API group. Volcano's and the native PodGroups are not among them."""

KOORDINATOR_KEYS: Final = (names.KOORDINATOR_NAME, *(key for key, _ in _KOORDINATOR.values()))
KOORDINATOR_POD_GROUP_KEYS: Final = tuple(key for key, _ in _ON_BOTH.values())

MAX_IGNORED: Final = 8
"""Ignored annotations that are reported."""


def _read_spec(values: Mapping[str, Any], path: str, wanted: _Fields) -> tuple[GroupSpec, tuple[FieldError, ...]]:
    fields = FieldReader(values, path)
    spec = GroupSpec(**{name: read(fields, key) for name, (key, read) in wanted.items()})
    return spec, tuple(fields.problems)


# --- Pods ------------------------------------------------------------------------------------------------------------


def _parse(form: Format, meta: RawMetadata) -> Membership | None:
    """What a pod says in one format. Its Koordinator annotations win over the PodGroup that its label may name."""
    if form is Format.KOORDINATOR_ANNOTATIONS:
        if not any(key in meta.annotations for key in KOORDINATOR_KEYS):
            return None
        named = _named(form if names.KOORDINATOR_NAME in meta.annotations else Format.KOORDINATOR_POD_GROUP, meta)
        spec, problems = _read_spec(meta.annotations, meta.annotations_path, _KOORDINATOR)
    elif form is Format.ALIBABA:
        named = _named(form, meta)
        spec, problems = _read_spec(meta.labels, meta.labels_path, _ALIBABA)
    else:
        return _named(form, meta)
    return None if named is None else msgspec.structs.replace(named, spec=spec, problems=named.problems + problems)


def _named(form: Format, meta: RawMetadata) -> Membership | None:
    """The group that a pod names. An empty name is a group that cannot exist, and its pods are held."""
    holder, key = NAME_KEYS[form]
    values = meta.labels if holder == "labels" else meta.annotations
    if key not in values:
        return None
    fields = FieldReader(values, child_path(meta.path, holder))
    # No object has Alibaba's name, so it may be any label value.
    name = fields.name(key, free=form is Format.ALIBABA)
    group = PodGroupKey(flavor=FLAVOR_OF[form], namespace=meta.namespace, name=name)
    return Membership(format=form, key=group, problems=tuple(fields.problems))


def parse_memberships(meta: RawMetadata, formats: Collection[Format] = ALL_FORMATS) -> list[Membership]:
    """What a pod says in each enabled format, the one that wins first."""
    if _NAMES.isdisjoint(meta.labels) and _NAMES.isdisjoint(meta.annotations):
        return []  # as most pods
    found = (_parse(form, meta) for form in Format if form in formats)
    # Koordinator's annotations with its label are of the label's format, which may be disabled.
    return [it for it in found if it is not None and it.format in formats]


def conflicting_names(meta: RawMetadata, formats: Collection[Format] = ALL_FORMATS) -> FieldError | None:
    """Why a pod is denied: it names two groups."""
    named = [it for it in parse_memberships(meta, formats) if it.key.name]
    different = tuple(sorted({it.key.name for it in named}))
    if len(different) < 2:
        return None
    both = ", ".join(f"{name_path(meta, it)} says {it.key.name}" for it in named)
    return FieldError(meta.path, different, f"names two groups, a pod belongs to one: {both}", CauseType.FORBIDDEN)


def parse_membership(
    meta: RawMetadata, formats: Collection[Format] = ALL_FORMATS, *, held: str = ""
) -> Membership | None:
    """The one group of a pod, with all errors in what it says; None for a pod that names none.

    `held`: the label of the group that holds the pod. A name that is added later does not replace that group, whichever
    would have won at creation.
    """
    found = parse_memberships(meta, formats)
    if not found:
        return None
    first = found[0] if len(found) == 1 else next((it for it in found if group_label(it.key) == held), found[0])
    # Both of Koordinator's formats read the label.
    problems = list(dict.fromkeys(problem for it in found for problem in it.problems))
    twice = conflicting_names(meta, formats)
    problems += [] if twice is None else [twice]
    problems += _conflicting_minimums(meta, found)
    used = KOORDINATOR_KEYS if first.key.flavor is Flavor.KOORDINATOR else ()
    return msgspec.structs.replace(first, problems=tuple(problems), ignored=ignored_annotations(meta.annotations, used))


def ignored_annotations(annotations: Iterable[str], used: Collection[str]) -> tuple[str, ...]:
    """Koordinator's annotations that are set and not used, the first few."""
    known = {*used, names.KOORDINATOR_TIMED_OUT}  # the latter is ours
    found = sorted(it for it in annotations if it.startswith(names.KOORDINATOR_PREFIX) and it not in known)
    return tuple(found[:MAX_IGNORED])


def minimum_without_name(meta: RawMetadata) -> FieldError | None:
    """A minimum on a pod that names no group: such a pod starts alone."""
    if parse_memberships(meta):
        return None
    sources = (
        (meta.labels, meta.labels_path, names.ALIBABA_MINIMUM, names.ALIBABA_NAME),
        (meta.annotations, meta.annotations_path, names.KOORDINATOR_MINIMUM, names.KOORDINATOR_NAME),
    )
    for values, path, minimum, name in sources:
        if minimum in values:
            message = f"must be given with {minimum}: the pod belongs to no group"
            return FieldError(child_path(path, name), None, message)
    return None


def name_path(meta: RawMetadata, member: Membership) -> str:
    """Field path of the key by which a pod names its group."""
    holder, key = NAME_KEYS[member.format]
    return child_path(child_path(meta.path, holder), key)


def _conflicting_minimums(meta: RawMetadata, found: list[Membership]) -> list[FieldError]:
    """Two formats on one pod that give different minimums of the same group."""
    wanted = {it.format: it.spec.minimum for it in found if it.spec.minimum is not None}
    different = tuple(sorted(set(wanted.values())))
    if len(different) < 2:
        return []
    both = " and ".join(f"{number} by {form}" for form, number in wanted.items())
    return [FieldError(meta.path, different, f"says two minimums of one group: {both}")]


# --- PodGroups -------------------------------------------------------------------------------------------------------


def api_group(kind: object, api_version: object) -> str | None:
    """The API group of a PodGroup of one of the three kinds, of any version; None for every other object."""
    if kind != names.POD_GROUP or not isinstance(api_version, str):
        return None
    group = api_version.rpartition("/")[0]
    return group if group in _SPECS else None


def parse_pod_group(pod_group: Json) -> PodGroupSource | None:
    """What a PodGroup says; None for an object of another kind or API group.

    The fields of another version are not known: such a PodGroup says nothing, and that is its error.
    """
    group = api_group(pod_group.get("kind"), pod_group.get("apiVersion"))
    if group is None:
        return None
    meta = pod_group.get("metadata")
    bare = PodGroupSource(
        api=group,
        namespace=as_text(nested(meta, "namespace")),
        name=as_text(nested(meta, "name")),
        uid=as_text(nested(meta, "uid")),
    )
    version = as_text(pod_group.get("apiVersion")).rpartition("/")[2]
    if version != names.POD_GROUP_VERSION:
        message = f"is not known here, only {group}/{names.POD_GROUP_VERSION}"
        unknown = FieldError("apiVersion", pod_group.get("apiVersion"), message, CauseType.NOT_SUPPORTED)
        return msgspec.structs.replace(bare, problems=(unknown,))
    spec, problems = _read_spec(as_map(pod_group.get("spec")), "spec", _SPECS[group])
    source = msgspec.structs.replace(bare, spec=spec, problems=problems)
    if group == names.KEP24_GROUP:
        return source
    raw = RawMetadata.of_object(pod_group, bare.namespace)
    annotated, annotation_problems = _read_spec(raw.annotations, raw.annotations_path, _ON_BOTH)
    ignored = ignored_annotations(raw.annotations, KOORDINATOR_POD_GROUP_KEYS)
    return msgspec.structs.replace(
        source, annotated_spec=annotated, annotation_problems=annotation_problems, ignored=ignored
    )
