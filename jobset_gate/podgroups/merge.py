"""Merges all sources of one group: members must agree, annotations win over the PodGroup (G1)."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

from jobset_gate import names
from jobset_gate.objects.field_error import FieldError, annotation_path
from jobset_gate.objects.terminal_text import truncate_list
from jobset_gate.podgroups.model import (
    NEEDS_POD_GROUP,
    POD_GROUP_APIS,
    Flavor,
    Format,
    GangMode,
    GroupSpec,
    MemberSource,
    MergedGroup,
    PodGroupKey,
    PodGroupSource,
)

MAX_PODS_NAMED: Final = 3
"""For each value that members contradict each other in."""

DEFAULT_WAIT: Final = Fraction(600)
"""Seconds, for formats without a limit: KEP-24 and Alibaba."""

DEFAULT_WAITS: Final[Mapping[Flavor, Fraction]] = MappingProxyType(
    {Flavor.SCHEDULER_PLUGINS: Fraction(60), Flavor.KOORDINATOR: Fraction(600)}
)
"""Seconds from the last gate removed to the minimum bound, by default (G1, G4)."""


def merge_group(
    key: PodGroupKey,
    members: Sequence[MemberSource],
    pod_groups: Sequence[PodGroupSource] = (),
    *,
    default_wait: Fraction = DEFAULT_WAIT,
) -> MergedGroup:
    """The group of that key, independent of the order of its sources. Sources of other groups are ignored."""
    ours = sorted((it for it in members if it.membership.key == key), key=lambda it: it.pod)
    pod_group = _pod_group(key, pod_groups)
    own_specs = [(it.membership.spec, it.pod) for it in ours]
    other_specs = _pod_group_specs(key, pod_group)
    problems: list[FieldError] = []

    def agreed(annotation: str, field: str) -> Any:
        """The members' value, else the PodGroup's; None, and an error, if members contradict each other."""
        values: dict[Any, list[str]] = {}
        for spec, pod in own_specs:
            if (value := getattr(spec, field)) is not None:
                values.setdefault(value, []).append(pod)
        if len(values) > 1:
            path = annotation_path(annotation) if key.flavor is Flavor.KOORDINATOR else minimum_path(key)
            problems.append(FieldError(path, sorted(map(_plain, values), key=str), _contradiction_text(values)))
            return None
        found = (*values, *(getattr(spec, field) for spec in other_specs))
        return next((it for it in found if it is not None), None)

    minimum = agreed(names.KOORDINATOR_MINIMUM, "minimum")
    total = agreed(names.KOORDINATOR_TOTAL, "total")
    wait = agreed(names.KOORDINATOR_WAIT, "wait")
    mode = agreed(names.KOORDINATOR_MODE, "mode")
    gangs = agreed(names.KOORDINATOR_GANGS, "gangs")
    formats = tuple(form for form in Format if any(it.membership.format is form for it in ours))
    # Annotations with a minimum replace the PodGroup.
    missing = pod_group is None and minimum is None and any(it in NEEDS_POD_GROUP for it in formats)
    problems += _of_pod_group(key, pod_group)
    blamed = tuple((it.pod, problem) for it in ours for problem in it.membership.problems)
    if minimum is None and not missing and not problems and not blamed:
        problems.append(FieldError(minimum_path(key), None, "must be given: nobody says how many pods the group needs"))
    if minimum is not None and total is not None and total < minimum:
        message = f"must not be below the group's minimum of {minimum}"
        problems.append(FieldError(annotation_path(names.KOORDINATOR_TOTAL), total, message))
    return MergedGroup(
        key=key,
        formats=formats,
        minimum=minimum,
        wait=DEFAULT_WAITS.get(key.flavor, default_wait) if wait is None else wait,
        mode=GangMode.STRICT if mode is None else mode,
        gangs=gangs or (),
        resources=(pod_group.spec.resources if pod_group else None) or (),
        pod_group=pod_group,
        pod_group_missing=missing,
        present=len(ours),
        problems=tuple(problems),
        blamed=blamed,
    )


def _pod_group(key: PodGroupKey, pod_groups: Sequence[PodGroupSource]) -> PodGroupSource | None:
    """Of the name and namespace, in the first API group that the flavor reads."""
    fitting = {it.api: it for it in pod_groups if (it.namespace, it.name) == (key.namespace, key.name)}
    return next((fitting[api] for api in POD_GROUP_APIS[key.flavor] if api in fitting), None)


def _pod_group_specs(key: PodGroupKey, pod_group: PodGroupSource | None) -> tuple[GroupSpec, ...]:
    if pod_group is None:
        return ()
    return (pod_group.spec, pod_group.annotated_spec) if key.flavor is Flavor.KOORDINATOR else (pod_group.spec,)


def _of_pod_group(key: PodGroupKey, pod_group: PodGroupSource | None) -> tuple[FieldError, ...]:
    if pod_group is None:
        return ()
    return pod_group.problems + (pod_group.annotation_problems if key.flavor is Flavor.KOORDINATOR else ())


def minimum_path(key: PodGroupKey) -> str:
    """Field path of a group's minimum: on its pods or in its PodGroup."""
    if key.flavor is Flavor.ALIBABA:
        return f"metadata.labels[{names.ALIBABA_MINIMUM}]"
    if key.flavor is Flavor.KOORDINATOR:
        return annotation_path(names.KOORDINATOR_MINIMUM)
    return "spec.minMembers" if key.flavor is Flavor.KEP_24 else "spec.minMember"


def _contradiction_text(values: Mapping[Any, Sequence[str]]) -> str:
    """Which pods have which value, the most frequent first."""
    order = sorted(values.items(), key=lambda it: (-len(it[1]), str(it[0])))
    listed = "; ".join(f"{_value_text(value)} by {truncate_list(pods, MAX_PODS_NAMED)}" for value, pods in order)
    return f"members contradict each other: {listed}"


def _value_text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return f"{float(value):g}s" if isinstance(value, Fraction) else str(value)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else list(value) if isinstance(value, tuple) else value
