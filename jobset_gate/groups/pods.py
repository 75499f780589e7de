"""A pod, or a template of pods, to its claim: all ways of saying a group asked in turn (G1)."""

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from jobset_gate import names
from jobset_gate.groups import alibaba, kep24, koordinator_annotations, koordinator_podgroup, scheduler_plugins
from jobset_gate.groups.identity import label
from jobset_gate.groups.model import Claim, Design, Meta, Way
from jobset_gate.violation import Fault, Violation, at

PARSERS: Final[Mapping[Way, Callable[[Meta], Claim | None]]] = MappingProxyType(
    {
        Way.KOORDINATOR_ANNOTATIONS: koordinator_annotations.claim,
        Way.KOORDINATOR_POD_GROUP: koordinator_podgroup.claim,
        Way.SCHEDULER_PLUGINS: scheduler_plugins.claim,
        Way.ALIBABA: alibaba.claim,
        Way.KEP_24: kep24.claim,
    }
)
"""In the order in which they win: a pod may carry the same name for several schedulers."""

NAMED_BY: Final[Mapping[Way, tuple[str, str]]] = MappingProxyType(
    {
        Way.KOORDINATOR_ANNOTATIONS: ("annotations", names.KOORDINATOR_NAME),
        Way.KOORDINATOR_POD_GROUP: ("labels", names.KOORDINATOR_LABEL),
        Way.SCHEDULER_PLUGINS: ("labels", names.PLUGINS_NAME),
        Way.ALIBABA: ("labels", names.ALIBABA_NAME),
        Way.KEP_24: ("annotations", names.KEP24_NAME),
    }
)
"""Whether a label or an annotation names the group, and which."""

ALL: Final = frozenset(Way)

MOST_IGNORED: Final = 8
"""Annotations that are told of."""


def claims(meta: Meta, ways: Collection[Way] = ALL) -> list[Claim]:
    """Each way's claim of a pod, the one that wins first; ways that are switched off say nothing."""
    found = (parser(meta) for way, parser in PARSERS.items() if way in ways)
    # Koordinator's annotations are also read beside its label, and then the label is the way.
    return [claim for claim in found if claim is not None and claim.way in ways]


def two_names(meta: Meta, ways: Collection[Way] = ALL) -> Violation | None:
    """What forbids a pod at admission: it names two groups, and can be in one only."""
    said = claims(meta, ways)
    different = tuple(sorted({claim.key.name for claim in said if claim.key.name}))
    if len(different) < 2:
        return None
    told = ", ".join(f"{place(meta, claim)} says {claim.key.name}" for claim in said if claim.key.name)
    return Violation(meta.path, different, f"names two groups, a pod belongs to one: {told}", Fault.FORBIDDEN)


def claim(meta: Meta, ways: Collection[Way] = ALL, *, held: str = "") -> Claim | None:
    """The one claim of a pod, with all that is wrong with what it says; None for a pod that names no group.

    `held`: the label of the group that it was taken for, if it was. A name that is put beside that one later does not
    take its place, whichever would win at creation.
    """
    said = claims(meta, ways)
    if not said:
        return None
    first = said[0] if len(said) == 1 else next((it for it in said if label(it.key) == held), said[0])
    twice = two_names(meta, ways)
    problems: list[Violation] = []
    for each in said:
        problems += [it for it in each.problems if it not in problems]  # both of Koordinator's ways read the label
    problems += [] if twice is None else [twice]
    problems += _minimums(meta, said)
    heeded = koordinator_annotations.KEYS if first.key.design is Design.KOORDINATOR else ()
    return Claim(
        way=first.way,
        key=first.key,
        terms=first.terms,
        problems=tuple(problems),
        ignored=ignored(meta.annotations, heeded),
    )


def ignored(annotations: Iterable[str], heeded: Collection[str]) -> tuple[str, ...]:
    """Which of Koordinator's annotations are there and are not heeded, the first few."""
    ours = {*heeded, names.KOORDINATOR_TIMED_OUT}  # that one we write ourselves
    found = sorted(it for it in annotations if it.startswith(names.KOORDINATOR_PREFIX) and it not in ours)
    return tuple(found[:MOST_IGNORED])


def nameless(meta: Meta) -> Violation | None:
    """A minimum that belongs to no group, since the pod names none: such a pod starts alone."""
    if claims(meta):
        return None
    sources = (
        (meta.labels, meta.labels_path, names.ALIBABA_MINIMUM, names.ALIBABA_NAME),
        (meta.annotations, meta.annotations_path, names.KOORDINATOR_MINIMUM, names.KOORDINATOR_NAME),
    )
    for values, path, minimum, name in sources:
        if minimum in values:
            return Violation(at(path, name), None, f"must be given beside {minimum}: the pod belongs to no group")
    return None


def moved(claimed: Claim | None, held: str) -> bool:
    """Whether a pod names another group by now than the one it is held for: reported, not followed (G2)."""
    return claimed is None or label(claimed.key) != held


def place(meta: Meta, claimed: Claim) -> str:
    """The field path of the key by which a pod names its group."""
    holder, key = NAMED_BY[claimed.way]
    return at(at(meta.path, holder), key)


def _minimums(meta: Meta, said: list[Claim]) -> list[Violation]:
    """Two ways on one pod that want different numbers of the same group."""
    wanted = {claim.way: claim.terms.minimum for claim in said if claim.terms.minimum is not None}
    if len(set(wanted.values())) < 2:
        return []
    told = " and ".join(f"{number} by {way}" for way, number in wanted.items())
    return [Violation(meta.path, tuple(sorted(set(wanted.values()))), f"says two minimums of one group: {told}")]
