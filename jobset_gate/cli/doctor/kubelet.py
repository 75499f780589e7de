"""How often kubelets look at their pods by themselves: so long a release by annotation may take (A6)."""

import re
from typing import Final

from jobset_gate.cli.doctor.cluster_reader import ClusterReader, NotReadable
from jobset_gate.cli.doctor.findings import Finding, ok, unknown, warning
from jobset_gate.kube.errors import KubeError
from jobset_gate.kube.resources import NODES
from jobset_gate.objects.unstructured import nested

USUAL: Final = 60.0
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_WHAT: Final = "how often kubelets look at their pods"
_REMEDY: Final = "look for syncFrequency in the kubelets' configuration; the usual value is 1m"


async def check(patient: ClusterReader) -> list[Finding]:
    """Asked of one node, and only where the API server passes the question on."""
    for node in await patient.list_objects(NODES):
        path = f"/api/v1/nodes/{nested(node, 'metadata', 'name')}/proxy/configz"
        try:
            told = nested(await patient.document(path, "configz"), "kubeletconfig", "syncFrequency")
        except NotReadable as no:
            return [unknown(_WHAT, str(no), _REMEDY)]
        except KubeError:
            told = None
        return [judged(str(told or ""))]
    return [unknown(_WHAT, "there is no node", _REMEDY)]


def judged(told: str) -> Finding:
    """By the kubelet's own words, `1m0s`."""
    parts = re.findall(r"([0-9.]+)(ms|h|m|s)", told)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not parts:
        return unknown(_WHAT, "kubelets do not tell it through the API server", _REMEDY)
    if seconds > USUAL:
        why = f"a pod that neither the gate stream nor an annotation reaches may wait for {told} after the release"
        return warning(f"kubelets look at their pods every {told}", why, "set syncFrequency to 1m or less")
    return ok(f"kubelets look at their pods every {told}")
