"""The groups among the documents: what is wrong with each manifest, and with the gangs they make."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from jobset_gate.cli.manifests import group_corrections
from jobset_gate.cli.manifests.jobsets import ManifestObject
from jobset_gate.objects.field_error import CauseType, FieldError, nearest
from jobset_gate.objects.unstructured import Json
from jobset_gate.podgroups import formats, merge, preconditions
from jobset_gate.podgroups.model import Membership, MemberSource, MergedGroup, PodGroupKey, PodGroupSource

_TWICE: Final = "is given twice: an object has one, so here are several objects, to be parted by ---"


@dataclass(frozen=True, slots=True)
class GroupFindings:
    item: ManifestObject
    field_errors: tuple[FieldError, ...] = ()
    corrected: Json | None = None
    """The corrected manifest, where an API server would refuse the given one."""
    claims: tuple[Membership, ...] = ()
    claim_paths: tuple[str, ...] = ()
    """Where each of them is in the object."""
    pod_group: PodGroupSource | None = None

    @property
    def summaries(self) -> list[str]:
        """What it comes to, if nothing is wrong with it."""
        if self.pod_group is not None:
            count = self.pod_group.spec.minimum
            return [f"PodGroup of {count} pod{'' if count == 1 else 's'}"]
        return [f"in group {_named(it.key)} ({it.format})" for it in self.claims]


def judge(item: ManifestObject) -> GroupFindings:
    """An object of a document; one that has to do with no group has nothing wrong with it."""
    doubled = (FieldError("metadata", None, _TWICE, CauseType.DUPLICATE),) if item.document.part else ()
    if not group_corrections.names_group(item.value):
        return GroupFindings(item, doubled)
    right = group_corrections.correct_manifest(item.value)
    metas = list(group_corrections.pod_metadata(right.manifest))
    named = [(meta, claim) for meta in metas if (claim := formats.parse_membership(meta)) is not None]
    claims, paths = tuple(it for _, it in named), tuple(formats.name_path(meta, it) for meta, it in named)
    pod_group = formats.parse_pod_group(right.manifest)
    wrong = [*doubled, *right.problems, *(problem for claim in claims for problem in claim.problems)]
    wrong += [it for meta in metas if (it := formats.minimum_without_name(meta)) is not None]
    if pod_group is not None:
        wrong += [*pod_group.problems, *pod_group.annotation_problems]
    corrected = right.manifest if doubled or right.problems else None
    return GroupFindings(item, tuple(wrong), corrected, claims, paths, pod_group)


class GroupProblem(msgspec.Struct, frozen=True):
    """What is wrong with a gang though each of its manifests is right, or doubtful."""

    item: ManifestObject
    path: str
    """Where the item names the group; empty for all of it."""
    message: str
    is_error: bool = False


def between(judged: Sequence[GroupFindings]) -> Iterator[GroupProblem]:
    """All problems of all groups."""
    for each in judged:
        ignored = {key for it in each.claims for key in it.ignored}
        ignored.update(each.pod_group.ignored if each.pod_group is not None else ())
        yield from (GroupProblem(each.item, "", f"annotation {key} is ignored") for key in sorted(ignored))
    first = {
        claim.key: (each.item, path)
        for each in reversed(judged)
        for claim, path in reversed([*zip(each.claims, each.claim_paths, strict=True)])
        if claim.key.name
    }
    groups = _merged(first, judged)
    for key, (item, path) in first.items():
        group, where = groups[key], f"group {_named(key)}"
        said = group.pod_group
        known = (*said.problems, *said.annotation_problems) if said else ()
        problems = [str(it) for it in group.problems if it not in known]
        if key.namespace:
            of_gang_group = preconditions.gang_group_of(group, groups.get, across_namespaces=True).problem
            problems += [str(of_gang_group)] if of_gang_group is not None else []
        yield from (GroupProblem(item, "", f"{where}: {it}", is_error=True) for it in problems)
        if group.pod_group_missing:
            meant = nearest(key.name, _pod_group_names(judged, key.namespace))
            hint = f" (did you mean {meant}?)" if meant else ""
            message = f"{where}: its PodGroup is not among these manifests{hint}; without it no pod of it starts"
            yield GroupProblem(item, path, message)
        others = {it.partition("/")[0] for it in group.gangs} - {key.namespace}
        if others and key.namespace:
            message = f"{where}: opens together with gangs of other namespaces only where a setting allows it"
            yield GroupProblem(item, "", message)


def _pod_group_names(judged: Sequence[GroupFindings], namespace: str) -> list[str]:
    found = (it.pod_group for it in judged if it.pod_group is not None)
    return [it.name for it in found if it.namespace == namespace]


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
