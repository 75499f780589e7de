"""Whether the scheduler places native gangs: a pair of pods tries it, only for who asks (G6)."""

from typing import Final

from jobset_gate.cli.doctor import native_probe
from jobset_gate.cli.doctor.cluster_reader import ClusterReader, NotReadable
from jobset_gate.cli.doctor.findings import Finding, error, ok
from jobset_gate.cli.doctor.native_probe import NativeProbeResult
from jobset_gate.kube.errors import ApiError, Forbidden

_OFF: Final = "set groups.native to Off, or "
_WRONG: Final = {
    NativeProbeResult.NOT_SERVED: (
        "the API server has no native PodGroups",
        "switch on their API and the feature gate GenericWorkload (Kubernetes 1.36 or newer)",
    ),
    NativeProbeResult.DROPPED: (
        "the API server drops spec.schedulingGroup from pods",
        "switch on the feature gate GenericWorkload of the API server",
    ),
    NativeProbeResult.NOT_HELD: (
        "one pod of a gang of two was bound alone",
        "switch on the scheduler's feature gate GangScheduling (Kubernetes 1.36) or GenericWorkload (from 1.37 on)",
    ),
    NativeProbeResult.NOT_BOUND: (
        "neither pod of a gang of two was bound in time",
        "see whether there is room for two pods, and the scheduler's log",
    ),
}


async def check(patient: ClusterReader) -> list[Finding]:
    """Creates two pods and a PodGroup, and takes them away again."""
    try:
        proof = await native_probe.probe_native(patient.client, patient.dry_run_namespace)
    except Forbidden as no:
        raise NotReadable(
            f"cannot create pods and native PodGroups in namespace {patient.dry_run_namespace}: {no.message}"
        ) from no
    except ApiError as no:
        raise NotReadable(
            f"native gangs could not be tried in namespace {patient.dry_run_namespace}: {no.message}"
        ) from no
    if proof is NativeProbeResult.WORKS:
        return [ok("the scheduler places native gangs", "two pods of one gang were bound together")]
    why, remedy = _WRONG[proof]
    return [error("the scheduler does not place native gangs", why, _OFF + remedy)]
