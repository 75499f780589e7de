"""KEP-24's totalResources against what is left of the namespace's ResourceQuotas (G4).

A quota charges pods when they are created, gated or not: so what members have been charged for is part of what their
group may have.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from jobset_gate.barrier.model import Value
from jobset_gate.objects.unstructured import Json, as_list, as_map, nested
from jobset_gate.podgroups.fit import constraints
from jobset_gate.podgroups.fit.constraints import PODS, Amounts
from jobset_gate.podgroups.model import Flavor
from jobset_gate.podgroups.snapshot import GroupSnapshot, MemberPod

_BYTES: Final = ("memory", "ephemeral-storage")
_PREFIX: Final = "requests."
_COUNT_PODS: Final = "count/pods"
_OTHERS: Final = ("limits.", "count/", "services", "secrets", "configmaps", "persistentvolumeclaims", "resourcequotas")
"""Of what a quota may limit, what has nothing to do with the requests of pods."""
_QOS: Final = ("cpu", "memory")
"""A pod that asks for neither is BestEffort."""


class QuotaLimits(Value, frozen=True):
    """A ResourceQuota, as far as it limits the requests of pods; amounts in thousandths by the resource's own name."""

    namespace: str
    name: str
    hard: Amounts
    used: Amounts
    scopes: tuple[str, ...] = ()
    """Which pods it is about; () is all of them."""

    def applies_to(self, member: MemberPod) -> bool | None:
        """Whether it is about this pod; None where that depends on what is not known here."""
        answers = [_SCOPES[it](member) if it in _SCOPES else None for it in self.scopes]
        if False in answers:
            return False
        return None if None in answers else True


def read_quota(quota: Json) -> QuotaLimits:
    """A ResourceQuota as it stands in the API. One that nobody has counted yet has used nothing of what it allows."""
    spec, status = as_map(quota.get("spec")), as_map(quota.get("status"))
    selector = as_list(nested(spec, "scopeSelector", "matchExpressions"))
    scopes = [str(it) for it in as_list(spec.get("scopes"))]
    # Beyond a scope's mere name it depends on values that are not looked into.
    scopes += [_scope(it) for it in selector]
    return QuotaLimits(
        namespace=str(nested(quota, "metadata", "namespace") or ""),
        name=str(nested(quota, "metadata", "name") or ""),
        hard=_limits(status.get("hard") or spec.get("hard")),
        used=_limits(status.get("used")),
        scopes=tuple(sorted(scopes)),
    )


def quota_shortage(group: GroupSnapshot, quotas: Sequence[QuotaLimits]) -> str:
    """What too little is left of for the group's totalResources, for people; "" if all of it is there."""
    for quota in quotas:
        for name, wanted, left in _compared(group, quota):
            if wanted > left:
                told = f"needs {_format(name, wanted)} {name}, {_format(name, max(0, left))} left"
                return f"{told} in ResourceQuota {quota.name}"
    return ""


def _compared(group: GroupSnapshot, quota: QuotaLimits) -> Iterator[tuple[str, int, int]]:
    """Of each resource that both name: what is wanted, and what the group may have."""
    if not _concerns(group) or not _is_near(group, quota) or _about(group, quota) != {True}:
        return
    charged = _charge(group)
    for name, amount in group.group.resources:
        if name in quota.hard:
            left = quota.hard[name] - quota.used.get(name, 0) + charged.get(name, 0)
            yield name, int(amount * 1000), left


def _concerns(group: GroupSnapshot) -> bool:
    return group.group.key.design is Flavor.KEP_24 and bool(group.group.resources)


def _is_near(group: GroupSnapshot, quota: QuotaLimits) -> bool:
    return quota.namespace == group.group.key.namespace


def _about(group: GroupSnapshot, quota: QuotaLimits) -> set[bool | None]:
    """The answers for all of its pods; they count only where all have the same."""
    return {quota.applies_to(it) for it in group.members if it.alive} or {True if not quota.scopes else None}


def _charge(group: GroupSnapshot) -> dict[str, int]:
    """What the members are charged for: finished pods are not, those that are being deleted still are."""
    total: dict[str, int] = {}
    for member in group.members:
        if member.phase not in ("Succeeded", "Failed"):
            for name, amount in member.shape.requests.items():
                total[name] = total.get(name, 0) + amount
    return total


def _limits(values: Any) -> dict[str, int]:
    """By the names that pods use: `requests.cpu` and `cpu` are one, of which the smaller counts."""
    found: dict[str, int] = {}
    for key, amount in constraints.parse_amounts(values).items():
        name = PODS if key == _COUNT_PODS else key.removeprefix(_PREFIX)
        if name == PODS or not name.startswith(_OTHERS):
            found[name] = min(amount, found.get(name, amount))
    return found


def _scope(expression: Any) -> str:
    name, operator = nested(expression, "scopeName"), nested(expression, "operator")
    return str(name) if operator == "Exists" else f"{name} {operator}"


def _best_effort(member: MemberPod) -> bool:
    return not any(member.shape.requests.get(it) for it in _QOS)


_SCOPES: Final[dict[str, Callable[[MemberPod], bool]]] = {
    "BestEffort": _best_effort,
    "NotBestEffort": lambda it: not _best_effort(it),
}
"""Others depend on fields that are not kept of pods: they are reported as not checked."""


def _format(name: str, thousandths: int) -> str:
    number = f"{thousandths / 1000:.10g}"
    return f"{thousandths / 1000 / 2**30:.4g}Gi" if name in _BYTES and thousandths else number
