"""TrainJobs of Kubeflow Trainer: each makes one JobSet of its own name, and that has the gang."""

from dataclasses import replace

from jobset_gate.barrier import wire
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.source import ObjectNotFound, forbidden_text
from jobset_gate.cli.options import ResourceArgument, ResourceKind
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import JOBSETS

_GROUP = "trainer.kubeflow.org/"


class _JobSet(wire.WireStruct, frozen=True):
    metadata: wire.MemberMeta


async def resolve_train_job(client: Client, namespace: str, argument: ResourceArgument) -> ResourceArgument:
    """The JobSet in the place of its TrainJob; any other argument as it is.

    TrainJobs are not read, so no right to them is needed. Raises ObjectNotFound where the TrainJob has no JobSet, and
    CommandError where JobSets may not be read.
    """
    if argument.kind is not ResourceKind.TRAIN_JOB:
        return argument
    name = argument.name
    try:
        owners = (await client.get(JOBSETS, name, namespace, type=_JobSet)).metadata.owner_references
    except NotFound as absent:
        more = f"Trainer makes one of its name; `kubectl describe trainjob {name} -n {namespace}` says whether it could"
        raise ObjectNotFound(f"TrainJob {name} in namespace {namespace} has no JobSet yet: {more}") from absent
    except Forbidden as no:
        raise CommandError(f"{forbidden_text('get', JOBSETS, namespace)} ({no.message})") from no
    its = (it for it in owners or () if it.controller and it.kind == "TrainJob" and it.api_version.startswith(_GROUP))
    if name not in {it.name for it in its}:
        raise ObjectNotFound(f"JobSet {name} in namespace {namespace} is of no TrainJob: say jobset/{name}")
    return replace(argument, kind=ResourceKind.JOBSET)
