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
from fractions import Fraction
from types import MappingProxyType
from typing import Final

import msgspec

from jobset_gate import names
from jobset_gate.objects.field_error import CauseType, FieldError, child_path
from jobset_gate.objects.unstructured import Json, as_map, nested
from jobset_gate.podgroups.fields import FieldReader
from jobset_gate.podgroups.model import (
    FLAVOR_OF,
    Flavor,
    Format,
    GangMode,
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

KOORDINATOR_KEYS: Final = (
    names.KOORDINATOR_NAME,
    names.KOORDINATOR_MINIMUM,
    names.KOORDINATOR_WAIT,
    names.KOORDINATOR_TOTAL,
    names.KOORDINATOR_MODE,
    names.KOORDINATOR_GANGS,
)
_POD_GROUP_ANNOTATIONS: Final = (names.KOORDINATOR_TOTAL, names.KOORDINATOR_MODE, names.KOORDINATOR_GANGS)
"""On Koordinator's PodGroup, whose spec has no field for them."""

MAX_IGNORED: Final = 8
"""Ignored annotations that are reported."""


# --- Pods ------------------------------------------------------------------------------------------------------------


def _by_name(form: Format) -> Callable[[RawMetadata], Membership | None]:
    """For formats whose pods give the name alone. An empty name is a group that cannot exist, and its pods are held."""
    holder, key = NAME_KEYS[form]

    def parse(meta: RawMetadata) -> Membership | None:
        fields = _reader(meta, holder)
        if key not in (meta.labels if holder == "labels" else meta.annotations):
            return None
        # No object has Alibaba's name, so it may be any label value.
        name = fields.name(key, free=form is Format.ALIBABA)
        group = PodGroupKey(design=FLAVOR_OF[form], namespace=meta.namespace, name=name)
        return Membership(format=form, key=group, problems=tuple(fields.problems))

    return parse


def _alibaba(meta: RawMetadata) -> Membership | None:
    named, fields = _by_name(Format.ALIBABA)(meta), _reader(meta, "labels")
    spec = GroupSpec(minimum=fields.count(names.ALIBABA_MINIMUM))
    if names.ALIBABA_MINIMUM not in meta.labels:
        fields.report_missing(names.ALIBABA_MINIMUM, "must be given: it is how many pods the group needs")
    return _with_spec(named, spec, fields)


def _koordinator_annotations(meta: RawMetadata) -> Membership | None:
    """A pod that names its PodGroup by the label may have the other annotations; they win over the PodGroup."""
    if not any(key in meta.annotations for key in KOORDINATOR_KEYS):
        return None
    by_label = names.KOORDINATOR_NAME not in meta.annotations
    named = _by_name(Format.KOORDINATOR_POD_GROUP if by_label else Format.KOORDINATOR_ANNOTATIONS)(meta)
    fields = _reader(meta, "annotations")
    spec = GroupSpec(
        minimum=fields.count(names.KOORDINATOR_MINIMUM),
        total=fields.count(names.KOORDINATOR_TOTAL),
        wait=fields.duration(names.KOORDINATOR_WAIT),
        mode=fields.choice(names.KOORDINATOR_MODE, GangMode),
        gangs=fields.gangs(names.KOORDINATOR_GANGS),
    )
    return _with_spec(named, spec, fields)


def _reader(meta: RawMetadata, holder: str) -> FieldReader:
    labels = holder == "labels"
    return FieldReader(*((meta.labels, meta.labels_path) if labels else (meta.annotations, meta.annotations_path)))


def _with_spec(named: Membership | None, spec: GroupSpec, fields: FieldReader) -> Membership | None:
    if named is None:
        return None
    return msgspec.structs.replace(named, spec=spec, problems=(*named.problems, *fields.problems))


PARSERS: Final[Mapping[Format, Callable[[RawMetadata], Membership | None]]] = MappingProxyType(
    {
        Format.KOORDINATOR_ANNOTATIONS: _koordinator_annotations,
        Format.KOORDINATOR_POD_GROUP: _by_name(Format.KOORDINATOR_POD_GROUP),
        Format.SCHEDULER_PLUGINS: _by_name(Format.SCHEDULER_PLUGINS),
        Format.ALIBABA: _alibaba,
        Format.KEP_24: _by_name(Format.KEP_24),
    }
)
"""In order of precedence: a pod may carry the same name for several schedulers."""


def parse_memberships(meta: RawMetadata, formats: Collection[Format] = ALL_FORMATS) -> list[Membership]:
    """What a pod says in each enabled format, the one that wins first."""
    found = (parser(meta) for form, parser in PARSERS.items() if form in formats)
    # Koordinator's annotations beside its label are of the label's format.
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
    used = KOORDINATOR_KEYS if first.key.design is Flavor.KOORDINATOR else ()
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
            message = f"must be given beside {minimum}: the pod belongs to no group"
            return FieldError(child_path(path, name), None, message)
    return None


def membership_changed(now: Membership | None, held: str) -> bool:
    """Whether a pod names another group than the one that holds it: reported, not followed (G2)."""
    return now is None or group_label(now.key) != held


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

_ParsedSpec = tuple[GroupSpec, tuple[FieldError, ...]]


def _kep24_spec(pod_group: Json) -> _ParsedSpec:
    fields = FieldReader(as_map(pod_group.get("spec")), "spec")
    spec = GroupSpec(minimum=fields.integer("minMembers", required=True), resources=fields.quantities("totalResources"))
    return spec, tuple(fields.problems)


def _plugins_spec(pod_group: Json) -> _ParsedSpec:
    fields = FieldReader(as_map(pod_group.get("spec")), "spec")
    seconds = fields.integer("scheduleTimeoutSeconds")
    spec = GroupSpec(
        minimum=fields.integer("minMember", required=True),
        wait=None if seconds is None else Fraction(seconds),
        resources=fields.quantities("minResources"),
    )
    return spec, tuple(fields.problems)


def _annotated_spec(meta: RawMetadata) -> _ParsedSpec:
    fields = FieldReader(meta.annotations, meta.annotations_path)
    spec = GroupSpec(
        total=fields.count(names.KOORDINATOR_TOTAL),
        mode=fields.choice(names.KOORDINATOR_MODE, GangMode),
        gangs=fields.gangs(names.KOORDINATOR_GANGS),
    )
    return spec, tuple(fields.problems)


SPEC_PARSERS: Final[Mapping[str, Callable[[Json], _ParsedSpec]]] = MappingProxyType(
    {names.KEP24_GROUP: _kep24_spec, names.PLUGINS_GROUP: _plugins_spec, names.SIGS_GROUP: _plugins_spec}
)
"""By API group. Volcano's and the native PodGroups are not among them."""


def api_group(kind: object, api_version: object) -> str | None:
    """The API group of a PodGroup of one of the three kinds, of any version; None for every other object."""
    if kind != names.POD_GROUP or not isinstance(api_version, str):
        return None
    group = api_version.rpartition("/")[0]
    return group if group in SPEC_PARSERS else None


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
        namespace=_text(nested(meta, "namespace")),
        name=_text(nested(meta, "name")),
        uid=_text(nested(meta, "uid")),
    )
    version = _text(pod_group.get("apiVersion")).rpartition("/")[2]
    if version != names.POD_GROUP_VERSION:
        message = f"is not known here, only {group}/{names.POD_GROUP_VERSION}"
        unknown = FieldError("apiVersion", pod_group.get("apiVersion"), message, CauseType.NOT_SUPPORTED)
        return msgspec.structs.replace(bare, problems=(unknown,))
    spec, problems = SPEC_PARSERS[group](pod_group)
    source = msgspec.structs.replace(bare, spec=spec, problems=problems)
    if group == names.KEP24_GROUP:
        return source
    raw = RawMetadata.of_object(pod_group, bare.namespace)
    annotated, annotation_problems = _annotated_spec(raw)
    ignored = ignored_annotations(raw.annotations, _POD_GROUP_ANNOTATIONS)
    return msgspec.structs.replace(
        source, annotated_spec=annotated, annotation_problems=annotation_problems, ignored=ignored
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
