"""The kinds of PodGroup: there, and such that a group can be said with them (G5)."""

from jobset_gate.cli.doctor.cluster_reader import ClusterReader
from jobset_gate.cli.doctor.findings import Finding, error, ok, warning
from jobset_gate.cli.doctor.webhook_configurations import for_pods
from jobset_gate.kube.resources import CRDS
from jobset_gate.podgroups import crds


async def check(patient: ClusterReader) -> list[Finding]:
    """Nothing to say where pod groups are off."""
    if not await for_pods(patient):
        return []
    return [await _judged(patient, name) for name in crds.GROUPS]


async def _judged(patient: ClusterReader, name: str) -> Finding:
    crd = await patient.get_object(CRDS, name)
    if crd is None:
        why = "pods that name a group in that way wait for a PodGroup that nobody can create"
        return warning(
            f"there is no CRD {name}", why, "set crds.podGroups in the chart's values, or switch the way off"
        )
    whose = "ours" if crds.is_ours(crd) else "somebody else's"
    if why := crds.why_unusable(crd):
        remedy = "install a version of it that is known here, or switch the way off in groups.ways"
        return error(f"the CRD {name} cannot be used; it is {whose}", why, remedy)
    return ok(f"the CRD {name} can be used", f"it is {whose}")
