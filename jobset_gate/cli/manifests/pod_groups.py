"""The groups among the documents: what is wrong with each manifest, and with the gangs they make."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from jobset_gate.cli.manifests import group_corrections
from jobset_gate.cli.manifests.jobsets import ManifestObject
from jobset_gate.objects.field_error import CauseType, FieldError
from jobset_gate.objects.unstructured import Json
from jobset_gate.podgroups import formats, merge, preconditions
from jobset_gate.podgroups.model import Membership, MemberSource, MergedGroup, PodGroupKey, PodGroupSource

WARNING: Final = ": warning: "
_TWICE: Final = "is given twice: an object has one, so here are several objects, to be parted by ---"


@dataclass(frozen=True, slots=True)
class GroupFindings:
    """The pod groups of one object."""

    item: ManifestObject
    field_errors: tuple[FieldError, ...] = ()
    corrected: Json | None = None
    """The corrected manifest, where an API server would refuse the given one."""
    claims: tuple[Membership, ...] = ()
    pod_group: PodGroupSource | None = None

    @property
    def summaries(self) -> list[str]:
        """What it comes to, if nothing is wrong with it."""
        if self.pod_group is not None:
            return [f"PodGroup of {self.pod_group.spec.minimum} pods"]
        return [f"in group {_named(it.key)} ({it.format})" for it in self.claims]


def judge(item: ManifestObject) -> GroupFindings:
    """An object of a document; one that has to do with no group has nothing wrong with it."""
    doubled = (FieldError("metadata", None, _TWICE, CauseType.DUPLICATE),) if item.document.part else ()
    if not group_corrections.names_group(item.value):
        return GroupFindings(item, doubled)
    right = group_corrections.correct_manifest(item.value)
    metas = list(group_corrections.pod_metadata(right.manifest))
    claims = tuple(claim for meta in metas if (claim := formats.parse_membership(meta)) is not None)
    pod_group = formats.parse_pod_group(right.manifest)
    wrong = [*doubled, *right.problems, *(problem for claim in claims for problem in claim.problems)]
    wrong += [it for meta in metas if (it := formats.minimum_without_name(meta)) is not None]
    if pod_group is not None:
        wrong += [*pod_group.problems, *pod_group.annotation_problems]
    corrected = right.manifest if doubled or right.problems else None
    return GroupFindings(item, tuple(wrong), corrected, claims, pod_group)


def format_errors(judged: GroupFindings) -> Iterator[str]:
    """A line for each thing that is wrong with one object."""
    for violation in judged.field_errors:
        yield f"{judged.item.at(violation.path)}: {violation}"


def between(judged: Sequence[GroupFindings]) -> Iterator[str]:
    """A line for each thing that is wrong with a gang though each of its manifests is right, or doubtful."""
    for each in judged:
        ignored = {key for it in each.claims for key in it.ignored}
        ignored.update(each.pod_group.ignored if each.pod_group is not None else ())
        yield from (f"{each.item.at()}{WARNING}annotation {key} is not heeded" for key in sorted(ignored))
    first = {claim.key: each.item for each in reversed(judged) for claim in reversed(each.claims) if claim.key.name}
    groups = _merged(first, judged)
    for key, item in sorted(first.items(), key=lambda it: _place(it[1])):
        where, group = f"{item.at()}: group {_named(key)}", groups[key]
        said = group.pod_group
        known = (*said.problems, *said.annotation_problems) if said else ()
        yield from (f"{where}: {it}" for it in group.problems if it not in known)
        problem = (
            preconditions.gang_group_of(group, groups.get, across_namespaces=True).problem if key.namespace else None
        )
        if problem is not None:
            yield f"{where}: {problem}"
        if group.pod_group_missing:
            yield f"{where}{WARNING}its PodGroup is not among these manifests; without it no pod of it starts"
        others = {it.partition("/")[0] for it in group.gangs} - {key.namespace}
        if others and key.namespace:
            yield f"{where}{WARNING}opens together with gangs of other namespaces only where a setting allows it"


def _place(item: ManifestObject) -> tuple[str, int]:
    """The order of objects as they were given."""
    return item.document.source, item.document.number


def _merged(keys: Iterable[PodGroupKey], judged: Sequence[GroupFindings]) -> dict[PodGroupKey, MergedGroup]:
    """Each group of its own members and PodGroups: all for each would cost their product."""
    members: dict[PodGroupKey, list[MemberSource]] = {}
    pod_groups: dict[tuple[str, str], list[PodGroupSource]] = {}
    for it in judged:
        for claim in it.claims:
            members.setdefault(claim.key, []).append(MemberSource(pod=it.item.title, membership=claim))
        if it.pod_group is not None:
            pod_groups.setdefault((it.pod_group.namespace, it.pod_group.name), []).append(it.pod_group)
    return {key: merge.merge_group(key, members[key], pod_groups.get((key.namespace, key.name), ())) for key in keys}


def _named(key: PodGroupKey) -> str:
    return key.path if key.namespace else key.name
