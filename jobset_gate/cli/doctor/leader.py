"""Whether somebody decides: the controller's Lease, and the pods that wait for its word."""

from typing import Final

from jobset_gate import names
from jobset_gate.cli.doctor.findings import Finding, error, ok, unknown
from jobset_gate.cli.doctor.patient import Patient, Unseen
from jobset_gate.cli.looking import keeper
from jobset_gate.cli.looking.gangs import GATED
from jobset_gate.kube.resources import PODS
from jobset_gate.template import Json, dig, items

_REMEDY: Final = (
    "see whether the controller's pods run, and read their log: `kubectl get deployments -A | grep jobset-gate`"
)
_ASK: Final = f"ask for the right to list Leases, or look at the controller's log; the Lease is called {names.LEASE}"


async def check(patient: Patient) -> list[Finding]:
    """An error where nobody leads, with the number of pods that wait."""
    told = await keeper.controller(patient.client, patient.home)
    if told.leads:
        return [ok("a controller leads", told.told)]
    if told.leads is None:
        return [unknown("whether a controller leads", told.told, _ASK)]
    try:
        waiting = await _waiting(patient)
    except Unseen as no:
        return [error("no controller leads", f"{told.told}; {no}", _REMEDY)]
    what = "no controller leads" + (f", and {_pods(waiting)} for its word" if waiting else "")
    return [error(what, told.told, _REMEDY)]


async def _waiting(patient: Patient) -> int:
    """Pods behind a barrier or a gate of ours."""
    await patient.gangs()  # it finds out which namespaces may be looked at
    gated = await patient.all(PODS, patient.namespace, labels=GATED)
    grouped = await patient.all(PODS, patient.namespace, labels=names.GANG)
    behind = [it for it in gated if dig(it, "status", "phase") == "Pending"]
    held = [it for it in grouped if _held(it)]
    return len({dig(it, "metadata", "uid") for it in behind + held})


def _held(pod: Json) -> bool:
    return any(dig(it, "name") == names.GANG_GATE for it in items(dig(pod, "spec", "schedulingGates")))


def _pods(count: int) -> str:
    return "1 pod waits" if count == 1 else f"{count} pods wait"
