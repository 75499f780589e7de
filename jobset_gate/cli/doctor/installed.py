"""Our own controller's Deployment, as the chart labels it."""

from jobset_gate import names
from jobset_gate.cli.doctor.patient import Patient
from jobset_gate.kube.resources import DEPLOYMENTS
from jobset_gate.template import Json

CONTROLLER = f"app.kubernetes.io/name={names.PROGRAM},app.kubernetes.io/component=controller"


async def controllers(patient: Patient) -> list[Json]:
    """Usually one. Raises Unseen."""
    return await patient.all(DEPLOYMENTS, labels=CONTROLLER)
