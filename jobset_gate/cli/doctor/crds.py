"""The CRDs: JobSet's with the field of jobset-gate in it (A2), and those of the PodGroups (G5)."""

from jobset_gate import names
from jobset_gate.barrier import crd as crd_schema
from jobset_gate.cli.doctor.cluster_reader import ClusterReader
from jobset_gate.cli.doctor.findings import Finding, error, ok, warning
from jobset_gate.cli.doctor.webhook_configurations import for_pods
from jobset_gate.kube.resources import CRDS
from jobset_gate.podgroups import crds


async def jobset_crd(reader: ClusterReader) -> list[Finding]:
    """Is JobSet there, and does it keep the field?"""
    crd = await reader.get_object(CRDS, crd_schema.CRD_NAME)
    place = f"spec.{names.CONFIG_FIELD}"
    if crd is None:
        return [
            error("JobSet is not installed", f"there is no CRD {crd_schema.CRD_NAME}", "install JobSet 0.9 or newer")
        ]
    if crd_schema.is_extended(crd):
        return [ok(f"JobSet's CRD has {place}")]
    if not crd_schema.can_be_extended(crd):
        why = f"it serves no {crd_schema.VERSION} with a schema for spec"
        return [error(f"JobSet's CRD has no place for {place}", why, "install JobSet 0.9 or newer")]
    why = f"the field is dropped from JobSets without a word; the annotation {names.CONFIG} works all the same"
    return [warning(f"JobSet's CRD lacks {place}", why, "run `kubectl jobset-gate install-crd-field`")]


async def podgroup_crds(reader: ClusterReader) -> list[Finding]:
    """Nothing to say where pod groups are off."""
    if not await for_pods(reader):
        return []
    return [await _judge_kind(reader, name) for name in crds.GROUPS]


async def _judge_kind(reader: ClusterReader, name: str) -> Finding:
    crd = await reader.get_object(CRDS, name)
    if crd is None:
        why = "pods that name a group in that way wait for a PodGroup that nobody can create"
        return warning(
            f"there is no CRD {name}", why, "set crds.podGroups in the chart's values, or switch the way off"
        )
    whose = "ours" if crds.is_ours(crd) else "another project's"
    if why := crds.why_unusable(crd):
        remedy = "install a version of it that is known here, or switch the way off in groups.ways"
        return error(f"the CRD {name} cannot be used; it is {whose}", why, remedy)
    return ok(f"the CRD {name} can be used", f"it is {whose}")
