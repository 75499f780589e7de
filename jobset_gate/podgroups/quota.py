"""KEP-24's totalResources against what is left of the namespace's ResourceQuotas (G4).

A quota charges pods at creation, gated or not, so what members have been charged for is part of what their group may
use. Quotas with scopes are not compared: which pods they charge depends on fields that are not kept.
"""

from collections.abc import Sequence
from typing import Any, Final

from jobset_gate.barrier.model import Value
from jobset_gate.objects.unstructured import as_list, as_map, nested
from jobset_gate.podgroups import wire
from jobset_gate.podgroups.fit.constraints import PODS, Amounts, format_amount, parse_amounts
from jobset_gate.podgroups.model import Flavor
from jobset_gate.podgroups.snapshot import GroupSnapshot

_PREFIX: Final = "requests."
_COUNT_PODS: Final = "count/pods"
_OTHERS: Final = ("limits.", "count/", "services", "secrets", "configmaps", "persistentvolumeclaims", "resourcequotas")
"""What a quota may limit other than the requests of pods."""


class QuotaLimits(Value, frozen=True):
    """A ResourceQuota's limits on the requests of pods, in thousandths, by the name of the resource."""

    namespace: str
    name: str
    hard: Amounts
    used: Amounts
    has_scopes: bool = False


def read_quota(quota: wire.ResourceQuota) -> QuotaLimits:
    """A ResourceQuota; one without a status yet has nothing used."""
    spec, status = as_map(quota.spec), as_map(quota.status)
    return QuotaLimits(
        namespace=quota.metadata.namespace,
        name=quota.metadata.name,
        hard=_limits(status.get("hard") or spec.get("hard")),
        used=_limits(status.get("used")),
        has_scopes=bool(as_list(spec.get("scopes")) or as_list(nested(spec, "scopeSelector", "matchExpressions"))),
    )


def quota_shortage(group: GroupSnapshot, quotas: Sequence[QuotaLimits]) -> str:
    """What lacks for the group's totalResources; "": nothing."""
    key, resources = group.group.key, group.group.resources
    if key.flavor is not Flavor.KEP_24 or not resources:
        return ""
    charged = _charged(group)
    for quota in quotas:
        if quota.has_scopes or quota.namespace != key.namespace:
            continue
        for name, amount in resources:
            wanted = int(amount * 1000)
            left = quota.hard.get(name, 0) - quota.used.get(name, 0) + charged.get(name, 0)
            if name in quota.hard and wanted > left:
                needs = f"needs {format_amount(name, wanted)} {name}, {format_amount(name, max(0, left))} left"
                return f"{needs} in ResourceQuota {quota.name}"
    return ""


def _charged(group: GroupSnapshot) -> dict[str, int]:
    """For the members: a quota charges terminating pods, and finished ones not."""
    total: dict[str, int] = {}
    for member in group.members:
        if member.phase not in ("Succeeded", "Failed"):
            for name, amount in member.shape.requests.items():
                total[name] = total.get(name, 0) + amount
    return total


def _limits(values: Any) -> dict[str, int]:
    """By the names that pods use; of `requests.cpu` and `cpu`, which are the same, the smaller."""
    found: dict[str, int] = {}
    for key, amount in parse_amounts(values).items():
        name = PODS if key == _COUNT_PODS else key.removeprefix(_PREFIX)
        if name == PODS or not name.startswith(_OTHERS):
            found[name] = min(amount, found.get(name, amount))
    return found
