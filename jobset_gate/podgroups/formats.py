"""A pod, or a template of pods, to its claim: all ways of saying a group asked in turn (G1)."""

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from jobset_gate import names
from jobset_gate.objects.field_error import CauseType, FieldError, child_path
from jobset_gate.podgroups import (
    format_alibaba,
    format_kep24,
    format_koordinator_annotations,
    format_koordinator_podgroup,
    format_scheduler_plugins,
)
from jobset_gate.podgroups.label import group_label
from jobset_gate.podgroups.model import Flavor, Format, Membership, RawMetadata

PARSERS: Final[Mapping[Format, Callable[[RawMetadata], Membership | None]]] = MappingProxyType(
    {
        Format.KOORDINATOR_ANNOTATIONS: format_koordinator_annotations.annotated_membership,
        Format.KOORDINATOR_POD_GROUP: format_koordinator_podgroup.labelled_membership,
        Format.SCHEDULER_PLUGINS: format_scheduler_plugins.plugins_membership,
        Format.ALIBABA: format_alibaba.alibaba_membership,
        Format.KEP_24: format_kep24.kep24_membership,
    }
)
"""In the order in which they win: a pod may carry the same name for several schedulers."""

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

ALL_FORMATS: Final = frozenset(Format)

MAX_IGNORED: Final = 8
"""Annotations that are told of."""


def parse_memberships(meta: RawMetadata, ways: Collection[Format] = ALL_FORMATS) -> list[Membership]:
    """Each way's claim of a pod, the one that wins first; ways that are switched off say nothing."""
    found = (parser(meta) for way, parser in PARSERS.items() if way in ways)
    # Koordinator's annotations are also read beside its label, and then the label is the way.
    return [claim for claim in found if claim is not None and claim.format in ways]


def conflicting_names(meta: RawMetadata, ways: Collection[Format] = ALL_FORMATS) -> FieldError | None:
    """What forbids a pod at admission: it names two groups, and can be in one only."""
    said = parse_memberships(meta, ways)
    different = tuple(sorted({claim.key.name for claim in said if claim.key.name}))
    if len(different) < 2:
        return None
    told = ", ".join(f"{name_path(meta, claim)} says {claim.key.name}" for claim in said if claim.key.name)
    return FieldError(meta.path, different, f"names two groups, a pod belongs to one: {told}", CauseType.FORBIDDEN)


def parse_membership(meta: RawMetadata, ways: Collection[Format] = ALL_FORMATS, *, held: str = "") -> Membership | None:
    """The one claim of a pod, with all that is wrong with what it says; None for a pod that names no group.

    `held`: the label of the group that it was taken for, if it was. A name that is put beside that one later does not
    take its place, whichever would win at creation.
    """
    said = parse_memberships(meta, ways)
    if not said:
        return None
    first = said[0] if len(said) == 1 else next((it for it in said if group_label(it.key) == held), said[0])
    twice = conflicting_names(meta, ways)
    problems: list[FieldError] = []
    for each in said:
        problems += [it for it in each.problems if it not in problems]  # both of Koordinator's ways read the label
    problems += [] if twice is None else [twice]
    problems += _conflicting_minimums(meta, said)
    heeded = format_koordinator_annotations.KEYS if first.key.design is Flavor.KOORDINATOR else ()
    return Membership(
        format=first.format,
        key=first.key,
        spec=first.spec,
        problems=tuple(problems),
        ignored=ignored_annotations(meta.annotations, heeded),
    )


def ignored_annotations(annotations: Iterable[str], heeded: Collection[str]) -> tuple[str, ...]:
    """Which of Koordinator's annotations are there and are not heeded, the first few."""
    ours = {*heeded, names.KOORDINATOR_TIMED_OUT}  # that one we write ourselves
    found = sorted(it for it in annotations if it.startswith(names.KOORDINATOR_PREFIX) and it not in ours)
    return tuple(found[:MAX_IGNORED])


def minimum_without_name(meta: RawMetadata) -> FieldError | None:
    """A minimum that belongs to no group, since the pod names none: such a pod starts alone."""
    if parse_memberships(meta):
        return None
    sources = (
        (meta.labels, meta.labels_path, names.ALIBABA_MINIMUM, names.ALIBABA_NAME),
        (meta.annotations, meta.annotations_path, names.KOORDINATOR_MINIMUM, names.KOORDINATOR_NAME),
    )
    for values, path, minimum, name in sources:
        if minimum in values:
            return FieldError(
                child_path(path, name), None, f"must be given beside {minimum}: the pod belongs to no group"
            )
    return None


def membership_changed(claimed: Membership | None, held: str) -> bool:
    """Whether a pod names another group by now than the one it is held for: reported, not followed (G2)."""
    return claimed is None or group_label(claimed.key) != held


def name_path(meta: RawMetadata, claimed: Membership) -> str:
    """The field path of the key by which a pod names its group."""
    holder, key = NAME_KEYS[claimed.format]
    return child_path(child_path(meta.path, holder), key)


def _conflicting_minimums(meta: RawMetadata, said: list[Membership]) -> list[FieldError]:
    """Two ways on one pod that want different numbers of the same group."""
    wanted = {claim.format: claim.spec.minimum for claim in said if claim.spec.minimum is not None}
    if len(set(wanted.values())) < 2:
        return []
    told = " and ".join(f"{number} by {way}" for way, number in wanted.items())
    return [FieldError(meta.path, tuple(sorted(set(wanted.values()))), f"says two minimums of one group: {told}")]
