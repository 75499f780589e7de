"""NetworkPolicies that keep gated pods from the gate stream, so that they hear of the release later."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

from jobset_gate import names
from jobset_gate.cli.doctor.cluster_reader import ClusterReader, NotReadable, controllers
from jobset_gate.cli.doctor.findings import Finding, ok, unknown, warning
from jobset_gate.cli.fetch.jobsets import FetchedJobSet
from jobset_gate.kube.resources import NAMESPACES, NETWORK_POLICIES
from jobset_gate.objects.jobset import replicated_jobs
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
    """In the namespace of the client."""


def egress_to(
    policies: Iterable[Json], labels: Mapping[str, str], place: Destination
) -> tuple[Egress, tuple[str, ...]]:
    """Whether pods with these labels get there, and the names of the policies that rule it."""
    ruling = [it for it in policies if _rules_egress(it) and matches(nested(it, "spec", "podSelector"), labels)]
    names_ = tuple(str(nested(it, "metadata", "name")) for it in ruling)
    ways = {_rule(as_map(rule), place) for it in ruling for rule in as_list(nested(it, "spec", "egress"))}
    if not ruling or Egress.OPEN in ways:
        return Egress.OPEN, names_
    return (Egress.UNCERTAIN if Egress.UNCERTAIN in ways else Egress.CLOSED), names_


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


_NAME: Final = "kubernetes.io/metadata.name"


@dataclass(frozen=True, slots=True)
class StreamClient:
    """Pods of one replicatedJob, and the gate stream they ask."""

    namespace: str
    jobset: str
    labels: tuple[tuple[str, str], ...]
    host: str
    port: int

    @property
    def service_namespace(self) -> str:
        """The namespace of the gate stream's Service; "" if its name does not tell."""
        parts = self.host.split(".")
        return parts[1] if len(parts) > 1 and (len(parts) == 2 or parts[2] == "svc") else ""


async def stream_egress(reader: ClusterReader) -> list[Finding]:
    """Per namespace and the policies that close the way."""
    askers = list(_stream_clients(await reader.gangs()))
    found: dict[tuple[str, Egress, tuple[str, ...]], set[str]] = {}
    for it in askers:
        policies = await reader.list_objects(NETWORK_POLICIES, it.namespace)
        egress, ruling = egress_to(policies, dict(it.labels), await _place(reader, it))
        if egress is not Egress.OPEN:
            found.setdefault((it.namespace, egress, ruling), set()).add(it.jobset)
    if askers and not found:
        return [ok("no NetworkPolicy keeps gated pods from the gate stream")]
    return [_finding(namespace, egress, ruling, gangs) for (namespace, egress, ruling), gangs in sorted(found.items())]


def _finding(namespace: str, egress: Egress, ruling: Iterable[str], gangs: set[str]) -> Finding:
    policies = ", ".join(sorted(ruling))
    remedy = "allow egress to the controller's pods at the gate stream's port (and to DNS)"
    count = f"{len(gangs)} gang{'' if len(gangs) == 1 else 's'}"
    if egress is Egress.UNCERTAIN:
        what = f"whether the pods of {count} in namespace {namespace} reach the gate stream"
        return unknown(what, f"the NetworkPolicies {policies} allow addresses or names that do not tell", remedy)
    what = f"NetworkPolicies keep the pods of {count} in namespace {namespace} from the gate stream"
    return warning(what, f"{policies}: these pods hear of the release from their kubelet, up to minutes later", remedy)


async def _place(reader: ClusterReader, asker: StreamClient) -> Destination:
    where = asker.service_namespace
    labels = {_NAME: where}
    try:
        labels |= as_map(nested(await reader.get_object(NAMESPACES, where), "metadata", "labels")) if where else {}
        pods = await _pods(reader, where)
    except NotReadable:
        pods = None  # its name is known all the same
    return Destination(labels, pods, asker.port, own=where == asker.namespace)


async def _pods(reader: ClusterReader, namespace: str) -> Json | None:
    """The labels of the controller's pods there."""
    for one in await controllers(reader):
        if nested(one, "metadata", "namespace") == namespace:
            return as_map(nested(one, "spec", "template", "metadata", "labels"))
    return None


def _stream_clients(fetched: Iterable[FetchedJobSet]) -> Iterator[StreamClient]:
    for gang in fetched:
        for job in replicated_jobs(gang.stored):
            url = urlsplit(_stream(job.spec_list("initContainers")))
            if not url.hostname:
                continue
            labels = job.labels[1] | {
                names.GATED: names.GATED_VALUE,
                names.JS_NAME: gang.name,
                names.JS_REPLICATED_JOB: job.name,
            }
            yield StreamClient(gang.namespace, gang.name, tuple(sorted(labels.items())), url.hostname, url.port or 80)


def _stream(inits: Iterable[object]) -> str:
    """The stream URL of the barrier; "" for none."""
    for one in inits:
        if nested(one, "name") == names.BARRIER_CONTAINER:
            for variable in as_list(nested(one, "env")):
                if nested(variable, "name") == names.ENV_STREAM:
                    return str(nested(variable, "value") or "")
    return ""
