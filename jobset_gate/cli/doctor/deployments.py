"""Our own Deployments, as the chart labels them."""

from typing import Final

from jobset_gate import names
from jobset_gate.cli.doctor.cluster_reader import ClusterReader
from jobset_gate.cli.fetch.deployments import LABELS
from jobset_gate.kube.resources import DEPLOYMENTS
from jobset_gate.objects.unstructured import Json

WEBHOOK: Final = f"app.kubernetes.io/name={names.PROGRAM},app.kubernetes.io/component=webhook"


async def controllers(patient: ClusterReader) -> list[Json]:
    """Usually one. Raises Unseen."""
    return await patient.list_objects(DEPLOYMENTS, labels=LABELS)


async def webhooks(patient: ClusterReader) -> list[Json]:
    """Those of the webhook; usually one. Raises Unseen."""
    return await patient.list_objects(DEPLOYMENTS, labels=WEBHOOK)
