"""JobSet's CRD, and our field in it (A2)."""

from jobset_gate import names
from jobset_gate.barrier import crd as crd_schema
from jobset_gate.cli.doctor.cluster_reader import ClusterReader
from jobset_gate.cli.doctor.findings import Finding, error, ok, warning
from jobset_gate.kube.resources import CRDS


async def check(patient: ClusterReader) -> list[Finding]:
    """Is JobSet there, and does it keep the field?"""
    crd = await patient.get_object(CRDS, crd_schema.CRD_NAME)
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
