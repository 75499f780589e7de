"""Whether somebody decides: the controller's Lease, and the pods that wait for its word."""

from typing import Final

from jobset_gate import names
from jobset_gate.cli.doctor.cluster_reader import ClusterReader, NotReadable
from jobset_gate.cli.doctor.findings import Finding, error, ok, unknown
from jobset_gate.cli.fetch import jobset_controller
from jobset_gate.cli.fetch.jobsets import GATED
from jobset_gate.kube.resources import PODS
from jobset_gate.objects.unstructured import Json, as_list, nested

_REMEDY: Final = (
    "see whether the controller's pods run, and read their log: `kubectl get deployments -A | grep jobset-gate`"
)
_ASK: Final = f"ask for the right to list Leases, or look at the controller's log; the Lease is called {names.LEASE}"


async def check(patient: ClusterReader) -> list[Finding]:
    """An error where nobody leads, with the number of pods that wait."""
    told = await jobset_controller.jobset_controller_status(patient.client, patient.dry_run_namespace)
    if told.leads:
        return [ok("a controller leads", told.told)]
    if told.leads is None:
        return [unknown("whether a controller leads", told.told, _ASK)]
    try:
        waiting = await _waiting(patient)
    except NotReadable as no:
        return [error("no controller leads", f"{told.told}; {no}", _REMEDY)]
    what = "no controller leads" + (f", and {_pods(waiting)} for its word" if waiting else "")
    return [error(what, told.told, _REMEDY)]


async def _waiting(patient: ClusterReader) -> int:
    """Pods behind a barrier or a gate of ours."""
    await patient.gangs()  # it finds out which namespaces may be looked at
    gated = await patient.list_objects(PODS, patient.namespace, labels=GATED)
    grouped = await patient.list_objects(PODS, patient.namespace, labels=names.POD_GROUP_LABEL)
    behind = [it for it in gated if nested(it, "status", "phase") == "Pending"]
    held = [it for it in grouped if _held(it)]
    return len({nested(it, "metadata", "uid") for it in behind + held})


def _held(pod: Json) -> bool:
    return any(nested(it, "name") == names.POD_GROUP_GATE for it in as_list(nested(pod, "spec", "schedulingGates")))


def _pods(count: int) -> str:
    return "1 pod waits" if count == 1 else f"{count} pods wait"
