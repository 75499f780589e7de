"""What `install-crd-field` does: the field spec.groupSchedulingConfig in the JobSet CRD, put in or taken out once."""

from controllers.barrier import crd_patcher
from jobset_gate import names
from jobset_gate.cli.exits import CommandError
from jobset_gate.kube import access
from jobset_gate.kube.client import Client

_FIELD = f"spec.{names.CONFIG_FIELD}"
_MESSAGES = {
    crd_patcher.CrdOutcome.EXTENDED: f"{_FIELD} is now part of the CRD {names.JOBSET_CRD}",
    crd_patcher.CrdOutcome.ALREADY_THERE: f"{_FIELD} was already part of the CRD {names.JOBSET_CRD}",
    crd_patcher.CrdOutcome.REMOVED: f"{_FIELD} is no longer part of the CRD {names.JOBSET_CRD}",
    crd_patcher.CrdOutcome.NOT_THERE: f"{_FIELD} was not part of the CRD {names.JOBSET_CRD}, or not by us",
}


async def run(*, kubeconfig: str | None, context: str | None, remove: bool) -> str:
    """Returns a sentence on what was done. Raises Failed where there is no CRD to put the field into."""
    reached = await access.load_access(kubeconfig, context)
    async with Client(reached) as client:
        outcome = await (crd_patcher.retract_crd(client) if remove else crd_patcher.extend_crd(client))
    if outcome is crd_patcher.CrdOutcome.NOT_INSTALLED and remove:
        return f"the CRD {names.JOBSET_CRD} is not there, nor is the field"
    if outcome is crd_patcher.CrdOutcome.NOT_INSTALLED:
        raise CommandError(f"the CRD {names.JOBSET_CRD} is not there: install JobSet first")
    return _MESSAGES[outcome]
