"""NetworkPolicies that keep gated pods from the gate stream, so that they hear of the release later."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from jobset_gate import names
from jobset_gate.cli.doctor import egress
from jobset_gate.cli.doctor.cluster_reader import ClusterReader, NotReadable
from jobset_gate.cli.doctor.deployments import controllers
from jobset_gate.cli.doctor.egress import Destination, Egress
from jobset_gate.cli.doctor.findings import Finding, ok, unknown, warning
from jobset_gate.cli.fetch.join import FetchedJobSet
from jobset_gate.kube.resources import NAMESPACES, NETWORK_POLICIES
from jobset_gate.objects.jobset import replicated_jobs
from jobset_gate.objects.unstructured import Json, as_list, as_map, nested

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


async def check(patient: ClusterReader) -> list[Finding]:
    """Per namespace and the policies that close the way."""
    askers = list(_askers(await patient.gangs()))
    found: dict[tuple[str, Egress, tuple[str, ...]], set[str]] = {}
    for it in askers:
        policies = await patient.list_objects(NETWORK_POLICIES, it.namespace)
        told, ruling = egress.egress_to(policies, dict(it.labels), await _place(patient, it))
        if told is not Egress.OPEN:
            found.setdefault((it.namespace, told, ruling), set()).add(it.jobset)
    if askers and not found:
        return [ok("no NetworkPolicy keeps gated pods from the gate stream")]
    return [_told(namespace, told, ruling, gangs) for (namespace, told, ruling), gangs in sorted(found.items())]


def _told(namespace: str, told: Egress, ruling: Iterable[str], gangs: set[str]) -> Finding:
    policies = ", ".join(sorted(ruling))
    remedy = "allow egress to the controller's pods at the gate stream's port (and to DNS)"
    count = f"{len(gangs)} gang{'' if len(gangs) == 1 else 's'}"
    if told is Egress.UNCERTAIN:
        what = f"whether the pods of {count} in namespace {namespace} reach the gate stream"
        return unknown(what, f"the NetworkPolicies {policies} allow addresses or names that do not tell", remedy)
    what = f"NetworkPolicies keep the pods of {count} in namespace {namespace} from the gate stream"
    return warning(what, f"{policies}: these pods hear of the release from their kubelet, up to minutes later", remedy)


async def _place(patient: ClusterReader, asker: StreamClient) -> Destination:
    where = asker.service_namespace
    labels = {_NAME: where}
    try:
        labels |= as_map(nested(await patient.get_object(NAMESPACES, where), "metadata", "labels")) if where else {}
        pods = await _pods(patient, where)
    except NotReadable:
        pods = None  # its name is known all the same
    return Destination(labels, pods, asker.port, own=where == asker.namespace)


async def _pods(patient: ClusterReader, namespace: str) -> Json | None:
    """The labels of the controller's pods there."""
    for one in await controllers(patient):
        if nested(one, "metadata", "namespace") == namespace:
            return as_map(nested(one, "spec", "template", "metadata", "labels"))
    return None


def _askers(sights: Iterable[FetchedJobSet]) -> Iterator[StreamClient]:
    for sight in sights:
        for job in replicated_jobs(sight.stored):
            url = urlsplit(_stream(job.spec_list("initContainers")))
            if not url.hostname:
                continue
            labels = job.labels[1] | {
                names.GATED: names.GATED_VALUE,
                names.JS_NAME: sight.name,
                names.JS_REPLICATED_JOB: job.name,
            }
            yield StreamClient(sight.namespace, sight.name, tuple(sorted(labels.items())), url.hostname, url.port or 80)


def _stream(inits: Iterable[object]) -> str:
    """The URL that the barrier asks; "" for none."""
    for one in inits:
        if nested(one, "name") == names.BARRIER_CONTAINER:
            for variable in as_list(nested(one, "env")):
                if nested(variable, "name") == names.ENV_STREAM:
                    return str(nested(variable, "value") or "")
    return ""
