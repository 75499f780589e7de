"""What `doctor` does: all checks side by side, and what they have found in the wanted form."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from jobset_gate.cli.doctor import (
    certificates,
    crd_field,
    dry_runs,
    gangs,
    kubelet,
    leader,
    missing_barriers,
    native,
    network_policies,
    other_schedulers,
    podgroup_crds,
    rights,
    serving_certificate,
    versions,
    webhook_configurations,
)
from jobset_gate.cli.doctor.cluster_reader import ClusterReader, NotReadable
from jobset_gate.cli.doctor.findings import Finding, healthy, unknown
from jobset_gate.cli.doctor.printer import document, text
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.invocation import Invocation
from jobset_gate.cli.manifests.writer import to_json, to_yaml
from jobset_gate.cli.printers import output, terminal
from jobset_gate.cli.printers.text_format import TextFormat
from jobset_gate.kube import access as ways
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError, InvalidResponse, Unauthorized

Check = Callable[[ClusterReader], Awaitable[list[Finding]]]
CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("Kubernetes' version", versions.kubernetes),
    ("JobSet's version", versions.jobset),
    ("JobSet's CRD", crd_field.check),
    ("the webhook configurations", webhook_configurations.check),
    ("the CAs in caBundle", certificates.bundles),
    ("the Secret with the CA", certificates.secret),
    ("the certificate that the webhook serves with", serving_certificate.check),
    ("whether a gated JobSet gets its barrier", dry_runs.good),
    ("whether wrong settings are refused", dry_runs.bad),
    ("whether a pod of a group is held", dry_runs.pod),
    ("the controller's rights", rights.of_controller),
    ("the webhook's rights", rights.of_webhook),
    ("your own rights", rights.own),
    ("whether a controller leads", leader.check),
    ("gangs", gangs.check),
    ("gangs without a barrier", missing_barriers.check),
    ("NetworkPolicies before the gate stream", network_policies.check),
    ("kubelets", kubelet.check),
    ("other schedulers", other_schedulers.schedulers),
    ("pods for other schedulers", other_schedulers.pods),
    ("other webhooks for pods", other_schedulers.webhooks),
    ("the kinds of PodGroup", podgroup_crds.check),
)
"""In the order in which they are told."""
NATIVE: Final[tuple[str, Check]] = ("whether the scheduler places native gangs", native.check)


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """What the command line asks for."""

    namespace: str | None = None
    output: TextFormat = TextFormat.TEXT
    native: bool = False
    kubeconfig: str | None = None
    context: str | None = None
    program: str = "kubectl jobset-gate"


async def run(wanted: DoctorOptions) -> ExitCode:
    """Prints the findings; an error among them is one of the command."""
    reached = await ways.load_access(wanted.kubeconfig, wanted.context)
    checks = [*CHECKS, *([NATIVE] if wanted.native else [])]
    async with Client(reached) as client:
        found = await findings(ClusterReader(client, wanted.namespace, wanted.namespace or reached.namespace), checks)
    caller = Invocation(wanted.program, wanted.kubeconfig, wanted.context, wanted.namespace)
    told = [replace(it, why=caller.rewrite_commands(it.why), remedy=caller.rewrite_commands(it.remedy)) for it in found]
    _tell(told, wanted.output)
    return ExitCode.OK if healthy(found) else ExitCode.ERROR


def _tell(found: Sequence[Finding], form: TextFormat) -> None:
    if form is TextFormat.TEXT:
        look = terminal.style_of(sys.stdout)
        output.out(text(found, look), look)
    else:
        output.document((to_json if form is TextFormat.JSON else to_yaml)([document(found)]))


async def findings(patient: ClusterReader, checks: Sequence[tuple[str, Check]] = CHECKS) -> list[Finding]:
    """Of all checks. Raises Unreachable where nobody answers at all, Unauthorized where nobody knows who asks."""
    async with asyncio.TaskGroup() as together:
        tasks = [together.create_task(_one(patient, *each)) for each in checks]
    return [it for task in tasks for it in task.result()]


async def _one(patient: ClusterReader, about: str, check: Check) -> list[Finding]:
    """What one of them cannot see keeps none of the others."""
    try:
        return await check(patient)
    except NotReadable as lost:
        return [unknown(about, str(lost), "run it as somebody who may")]
    except Unauthorized:
        raise
    except (ApiError, InvalidResponse) as problem:
        return [unknown(about, str(problem), "try again, and look into the API server's log")]
