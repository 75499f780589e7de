"""Rights: those of the ServiceAccounts of controller and webhook, and those of the user."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from jobset_gate import names
from jobset_gate.barrier.source import Source
from jobset_gate.cli.doctor.check import (
    ClusterReader,
    Finding,
    NotReadable,
    controllers,
    error,
    ok,
    unknown,
    warning,
    webhooks,
)
from jobset_gate.cli.doctor.webhook_configurations import hooks_for
from jobset_gate.cli.fetch.source import forbidden_text
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import (
    CONFIGMAPS,
    EVENTS,
    JOBS,
    JOBSETS,
    LEADER_WORKER_SETS,
    LEASES,
    MUTATING_WEBHOOKS,
    NODES,
    PODS,
    SELF_SUBJECT_ACCESS_REVIEWS,
    STATEFUL_SETS,
    SUBJECT_ACCESS_REVIEWS,
    Resource,
)
from jobset_gate.objects.unstructured import Json, nested
from jobset_gate.sources.table import JOB, LWS, START_GROUP
from webhook.registration import MUTATING


@dataclass(frozen=True, slots=True)
class RequiredRight:
    """One verb, and the consequence where it is missing. `name`: of this object, in our namespace if it has one."""

    verb: str
    resource: Resource
    consequence: str
    part: str = ""
    name: str = ""
    vital: bool = True

    @property
    def label(self) -> str:
        """`patch jobsets/status`."""
        return f"{self.verb} {self.resource.plural}" + (f"/{self.part}" if self.part else "")


CONTROLLER: Final = (
    RequiredRight("list", JOBSETS, "it sees no gang"),
    RequiredRight("watch", JOBSETS, "it sees no gang"),
    RequiredRight("patch", JOBSETS, "no gang shows how far it is", part="status", vital=False),
    RequiredRight("watch", JOBS, "it cannot tell who is missing"),
    RequiredRight("watch", PODS, "it cannot tell who has started"),
    RequiredRight("create", CONFIGMAPS, "no gang is released"),
    RequiredRight("update", CONFIGMAPS, "no gang is released"),
    RequiredRight("list", EVENTS, "what quotas say is not known", vital=False),
    RequiredRight("get", LEASES, "it cannot lead", name=names.LEASE),
    RequiredRight("update", LEASES, "it cannot lead", name=names.LEASE),
)
_STATUS_OF_LWS: Final = "no group of a LeaderWorkerSet shows how far it is"
_WHOSE_WORKERS: Final = "it cannot tell which worker pods belong to which leader"
MORE: Final[dict[Source | None, tuple[RequiredRight, ...]]] = {
    None: (
        RequiredRight("patch", PODS, "no group is opened"),
        RequiredRight("list", NODES, "it cannot tell where there is room", vital=False),
    ),
    JOB: (
        RequiredRight("get", JOBS, "no gang of a Job is released"),
        RequiredRight("patch", JOBS, "no gang of a Job shows how far it is", part="status", vital=False),
    ),
    LWS: (
        RequiredRight("list", LEADER_WORKER_SETS, _STATUS_OF_LWS, vital=False),
        RequiredRight("watch", LEADER_WORKER_SETS, _STATUS_OF_LWS, vital=False),
        RequiredRight(
            "patch", LEADER_WORKER_SETS, "no LeaderWorkerSet shows how far its groups are", part="status", vital=False
        ),
        RequiredRight("list", STATEFUL_SETS, _WHOSE_WORKERS),
        RequiredRight("watch", STATEFUL_SETS, _WHOSE_WORKERS),
        RequiredRight("patch", PODS, "pods of LeaderWorkerSets that cannot reach the gate stream are not released"),
    ),
    START_GROUP: (
        RequiredRight("patch", PODS, "pods of start groups that cannot reach the gate stream are not released"),
        RequiredRight("get", STATEFUL_SETS, "it cannot tell that a StatefulSet never creates enough pods", vital=False),
        RequiredRight("patch", CONFIGMAPS, "no start group shows how far it is", vital=False),
    ),
}
"""In addition, where gangs of that source are enabled; None: pod groups."""
WEBHOOK: Final = (
    RequiredRight(
        "get", MUTATING_WEBHOOKS, "it cannot see whether API servers trust it, and never gets ready", name=MUTATING
    ),
    RequiredRight("watch", MUTATING_WEBHOOKS, "it does not see changes of what they trust", name=MUTATING),
)
OWN: Final = (
    RequiredRight("list", JOBSETS, "`get` shows nothing"),
    RequiredRight("get", JOBSETS, "`why` says nothing"),
    RequiredRight("list", PODS, "`why` cannot tell who is missing"),
    RequiredRight("list", JOBS, "`why` cannot tell which Jobs have finished"),
    RequiredRight("list", EVENTS, "`why` does not know what quotas and kubelets say"),
    RequiredRight("get", CONFIGMAPS, "`why` knows decisions from the JobSet's condition only"),
    RequiredRight("patch", JOBSETS, "`release` and `bypass` are not for you"),
)
_ALLOW: Final = "bind the chart's ClusterRole to it again: `helm upgrade` with rbac.create does"


async def of_controller(reader: ClusterReader) -> list[Finding]:
    """A handful of them, without which nothing works."""
    rights = [*CONTROLLER]
    with suppress(NotReadable):
        for source, more in MORE.items():
            rights += more if await hooks_for(reader, source) else ()
    found = [it for one in await controllers(reader) for it in await _of_account(reader, one, rights)]
    why = "no Deployment has the labels of the chart's controller"
    remedy = "compare its RBAC with the chart's"
    return found or [unknown("the rights of the controller's ServiceAccount", why, remedy)]


async def of_webhook(reader: ClusterReader) -> list[Finding]:
    """Those that its readiness hangs on."""
    return [it for one in await webhooks(reader) for it in await _of_account(reader, one, WEBHOOK)]


async def _of_account(reader: ClusterReader, deployment: Json, rights: Sequence[RequiredRight]) -> list[Finding]:
    namespace = str(nested(deployment, "metadata", "namespace"))
    account = nested(deployment, "spec", "template", "spec", "serviceAccountName") or "default"
    who = {
        "user": f"system:serviceaccount:{namespace}:{account}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
    }
    found = []
    for right in rights:
        where = namespace if right.name and right.resource.namespaced else ""
        if not await _may(reader, right, where, who):
            say, lacks = error if right.vital else warning, f"{namespace}/{account} may not {right.label}"
            found.append(say(f"the ServiceAccount {lacks}", right.consequence, _ALLOW))
    return found or [ok(f"the ServiceAccount {namespace}/{account} has its rights")]


async def own(reader: ClusterReader) -> list[Finding]:
    """In the namespace that commands use by default."""
    lacks = [it for it in OWN if not await _may(reader, it, reader.dry_run_namespace)]
    remedy = "ask for the right, if you need it"
    return [
        warning(f"you {forbidden_text(it.verb, it.resource, reader.dry_run_namespace)}", it.consequence, remedy)
        for it in lacks
    ] or [ok(f"you may look at gangs in namespace {reader.dry_run_namespace}")]


async def _may(reader: ClusterReader, right: RequiredRight, namespace: str, who: Json | None = None) -> bool:
    """Whether `who`, or else the user, has the right; a namespace of "" is all of them. Raises NotReadable."""
    kind = SELF_SUBJECT_ACCESS_REVIEWS if who is None else SUBJECT_ACCESS_REVIEWS
    its = {"group": right.resource.group, "resource": right.resource.plural, "subresource": right.part}
    attributes = {"verb": right.verb, **its, "name": right.name, "namespace": namespace}
    spec = {"resourceAttributes": attributes, **(who or {})}
    try:
        return nested(await reader.client.create(kind, {"spec": spec}), "status", "allowed") is True
    except NotFound as no:
        raise NotReadable("the API server answers no questions about rights") from no
    except Forbidden as no:
        raise NotReadable(forbidden_text("create", kind, None)) from no
