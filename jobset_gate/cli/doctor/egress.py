"""What NetworkPolicies say about one way out of a pod. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jobset_gate.objects.unstructured import Json, as_list, as_map, nested


class Egress(StrEnum):
    """Whether it is open."""

    OPEN = "open"
    CLOSED = "closed"
    UNCERTAIN = "uncertain"
    """It depends on addresses, or on names of ports."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where to: the namespace with its labels, and the port. Labels of its pods: None if they are not known."""

    namespace: Mapping[str, str]
    pods: Mapping[str, str] | None
    port: int
    own: bool = False
    """In the namespace of who asks."""


def egress_to(
    policies: Iterable[Json], labels: Mapping[str, str], place: Destination
) -> tuple[Egress, tuple[str, ...]]:
    """Whether pods with these labels get there, and the names of the policies that rule it."""
    ruling = [it for it in policies if _rules_egress(it) and matches(nested(it, "spec", "podSelector"), labels)]
    told = tuple(str(nested(it, "metadata", "name")) for it in ruling)
    ways = {_rule(as_map(rule), place) for it in ruling for rule in as_list(nested(it, "spec", "egress"))}
    if not ruling or Egress.OPEN in ways:
        return Egress.OPEN, told
    return (Egress.UNCERTAIN if Egress.UNCERTAIN in ways else Egress.CLOSED), told


def matches(selector: Any, labels: Mapping[str, str]) -> bool:
    """A label selector; an empty one matches everything."""
    wanted = as_map(as_map(selector).get("matchLabels"))
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(as_map(it), labels) for it in as_list(as_map(selector).get("matchExpressions"))
    )


def _rules_egress(policy: Json) -> bool:
    """Without types it rules egress if it has a rule for it."""
    types = as_list(nested(policy, "spec", "policyTypes"))
    return "Egress" in types or (not types and bool(as_list(nested(policy, "spec", "egress"))))


def _rule(rule: Json, place: Destination) -> Egress:
    ports = [_port(as_map(it), place.port) for it in as_list(rule.get("ports"))] or [Egress.OPEN]
    peers = [_peer(as_map(it), place) for it in as_list(rule.get("to"))] or [Egress.OPEN]
    both = {_best(ports), _best(peers)}
    if Egress.CLOSED in both:
        return Egress.CLOSED
    return Egress.UNCERTAIN if Egress.UNCERTAIN in both else Egress.OPEN


def _best(ways: list[Egress]) -> Egress:
    return next(it for it in (Egress.OPEN, Egress.UNCERTAIN, Egress.CLOSED) if it in ways)


def _port(port: Json, wanted: int) -> Egress:
    if port.get("protocol", "TCP") != "TCP":
        return Egress.CLOSED
    first, last = port.get("port"), port.get("endPort")
    if first is None:
        return Egress.OPEN
    if isinstance(first, str):
        return Egress.UNCERTAIN
    return Egress.OPEN if first <= wanted <= (last or first) else Egress.CLOSED


def _peer(peer: Json, place: Destination) -> Egress:
    if "ipBlock" in peer:
        return Egress.OPEN if _everywhere(as_map(peer["ipBlock"])) else Egress.UNCERTAIN
    there = matches(peer["namespaceSelector"], place.namespace) if "namespaceSelector" in peer else place.own
    if not there:
        return Egress.CLOSED
    if not as_map(peer.get("podSelector")):
        return Egress.OPEN
    if place.pods is None:
        return Egress.UNCERTAIN
    return Egress.OPEN if matches(peer["podSelector"], place.pods) else Egress.CLOSED


def _everywhere(block: Json) -> bool:
    return block.get("cidr") in ("0.0.0.0/0", "::/0") and not block.get("except")


def _holds(expression: Json, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(str(expression.get("key"))), as_list(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None
