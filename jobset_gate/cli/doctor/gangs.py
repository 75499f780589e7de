"""The gangs that could be read, those without a barrier, and whether a controller leads."""

from typing import Final

from jobset_gate import names
from jobset_gate.cli.doctor.check import ClusterReader, Finding, NotReadable, error, is_held, ok, unknown
from jobset_gate.cli.fetch.controller_status import controller_status
from jobset_gate.cli.fetch.gangs import GATED
from jobset_gate.explain.model import GangState
from jobset_gate.kube.resources import PODS
from jobset_gate.objects.terminal_text import truncate_list
from jobset_gate.objects.unstructured import nested


async def count(reader: ClusterReader) -> list[Finding]:
    """Their number, and the rights that were missing."""
    found = await reader.gangs()
    where = f"namespace {reader.namespace}" if reader.namespace else "all namespaces"
    remedy = "run it as a user with that right"
    lacking = [it.partition(": ") for it in reader.rights.missing]
    count = f"{len(found)} gang{'' if len(found) == 1 else 's'} in {where}"
    return [ok(count), *(unknown(lost, right, remedy) for right, _, lost in lacking)]


MOST_NAMED: Final = 5
_CREATE_AGAIN: Final = "delete and create them again now that the webhook is there: a gate cannot be added to a JobSet"


async def without_barrier(reader: ClusterReader) -> list[Finding]:
    """Those that are neither finished nor bypassed."""
    found = await reader.gangs()
    bare = [f"{it.namespace}/{it.name}" for it in found if it.explained().state is GangState.GATE_MISSING]
    if bare:
        what = f"{len(bare)} of {len(found)} gangs have no barrier"
        return [error(what, f"their pods start at once: {truncate_list(bare, MOST_NAMED)}", _CREATE_AGAIN)]
    return [ok("every gang has its barrier")] if found else []


_SEE_CONTROLLER: Final = (
    "see whether the controller's pods run, and read their log: `kubectl get deployments -A | grep jobset-gate`"
)
_ASK_FOR_LEASES: Final = (
    f"ask for the right to list Leases, or look at the controller's log; the Lease is called {names.LEASE}"
)


async def leader(reader: ClusterReader) -> list[Finding]:
    """An error without a leader, with the number of pods that wait."""
    status = await controller_status(reader.client, reader.dry_run_namespace)
    if status.leads:
        return [ok("a controller leads", status.message)]
    if status.leads is None:
        return [unknown("whether a controller leads", status.message, _ASK_FOR_LEASES)]
    try:
        waiting = await _waiting_pods(reader)
    except NotReadable as no:
        return [error("no controller leads", f"{status.message}; {no}", _SEE_CONTROLLER)]
    pods = "1 pod waits" if waiting == 1 else f"{waiting} pods wait"
    what = "no controller leads" + (f", and {pods} for its word" if waiting else "")
    return [error(what, status.message, _SEE_CONTROLLER)]


async def _waiting_pods(reader: ClusterReader) -> int:
    """Pods that wait at a barrier or have our scheduling gate."""
    await reader.gangs()  # it finds out which namespaces may be looked at
    gated = await reader.list_objects(PODS, reader.namespace, labels=GATED)
    grouped = await reader.list_objects(PODS, reader.namespace, labels=names.POD_GROUP_LABEL)
    behind = [it for it in gated if nested(it, "status", "phase") == "Pending"]
    return len({nested(it, "metadata", "uid") for it in [*behind, *filter(is_held, grouped)]})
