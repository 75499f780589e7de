"""Which gangs could be looked at, and what of them could not."""

from jobset_gate.cli.doctor.cluster_reader import ClusterReader
from jobset_gate.cli.doctor.findings import Finding, ok, unknown


async def check(patient: ClusterReader) -> list[Finding]:
    """Their number, and the rights that were missing."""
    found = await patient.gangs()
    where = f"namespace {patient.namespace}" if patient.namespace else "all namespaces"
    remedy = "run it as somebody who may"
    lacking = [it.partition(": ") for it in patient.rights.missing]
    count = f"{len(found)} gang{'' if len(found) == 1 else 's'} in {where}"
    return [ok(count), *(unknown(lost, right, remedy) for right, _, lost in lacking)]
