"""What NetworkPolicies say about one way out of a pod. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jobset_gate.template import Json, dig, items, mapping


class Way(StrEnum):
    """Whether it is open."""

    OPEN = "open"
    CLOSED = "closed"
    UNCERTAIN = "uncertain"
    """It depends on addresses, or on names of ports."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where to: the namespace with its labels, and the port. Labels of its pods: None if they are not known."""

    namespace: Mapping[str, str]
    pods: Mapping[str, str] | None
    port: int
    own: bool = False
    """In the namespace of who asks."""


def way(policies: Iterable[Json], labels: Mapping[str, str], place: Place) -> tuple[Way, tuple[str, ...]]:
    """Whether pods with these labels get there, and the names of the policies that rule it."""
    ruling = [it for it in policies if _rules_egress(it) and matches(dig(it, "spec", "podSelector"), labels)]
    told = tuple(str(dig(it, "metadata", "name")) for it in ruling)
    ways = {_rule(mapping(rule), place) for it in ruling for rule in items(dig(it, "spec", "egress"))}
    if not ruling or Way.OPEN in ways:
        return Way.OPEN, told
    return (Way.UNCERTAIN if Way.UNCERTAIN in ways else Way.CLOSED), told


def matches(selector: Any, labels: Mapping[str, str]) -> bool:
    """A label selector; an empty one matches everything."""
    wanted = mapping(mapping(selector).get("matchLabels"))
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(mapping(it), labels) for it in items(mapping(selector).get("matchExpressions"))
    )


def _rules_egress(policy: Json) -> bool:
    """Without types it rules egress if it has a rule for it."""
    types = items(dig(policy, "spec", "policyTypes"))
    return "Egress" in types or (not types and bool(items(dig(policy, "spec", "egress"))))


def _rule(rule: Json, place: Place) -> Way:
    ports = [_port(mapping(it), place.port) for it in items(rule.get("ports"))] or [Way.OPEN]
    peers = [_peer(mapping(it), place) for it in items(rule.get("to"))] or [Way.OPEN]
    both = {_best(ports), _best(peers)}
    if Way.CLOSED in both:
        return Way.CLOSED
    return Way.UNCERTAIN if Way.UNCERTAIN in both else Way.OPEN


def _best(ways: list[Way]) -> Way:
    return next(it for it in (Way.OPEN, Way.UNCERTAIN, Way.CLOSED) if it in ways)


def _port(port: Json, wanted: int) -> Way:
    if port.get("protocol", "TCP") != "TCP":
        return Way.CLOSED
    first, last = port.get("port"), port.get("endPort")
    if first is None:
        return Way.OPEN
    if isinstance(first, str):
        return Way.UNCERTAIN
    return Way.OPEN if first <= wanted <= (last or first) else Way.CLOSED


def _peer(peer: Json, place: Place) -> Way:
    if "ipBlock" in peer:
        return Way.OPEN if _everywhere(mapping(peer["ipBlock"])) else Way.UNCERTAIN
    there = matches(peer["namespaceSelector"], place.namespace) if "namespaceSelector" in peer else place.own
    if not there:
        return Way.CLOSED
    if not mapping(peer.get("podSelector")):
        return Way.OPEN
    if place.pods is None:
        return Way.UNCERTAIN
    return Way.OPEN if matches(peer["podSelector"], place.pods) else Way.CLOSED


def _everywhere(block: Json) -> bool:
    return block.get("cidr") in ("0.0.0.0/0", "::/0") and not block.get("except")


def _holds(expression: Json, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(str(expression.get("key"))), items(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None
