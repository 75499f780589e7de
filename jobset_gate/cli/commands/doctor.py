"""`doctor`: what is wrong with an installation, and what to do about it. All checks run side by side."""

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final

import typer

from jobset_gate.cli import logs
from jobset_gate.cli.cluster import ClusterOptions, Invocation
from jobset_gate.cli.doctor import dry_runs, gangs, native_probe, prerequisites, rights, webhook_configurations
from jobset_gate.cli.doctor.check import ClusterReader, Finding, FindingLevel, NotReadable, unknown
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.options import LogLevel, TextFormat, TextOutput, new_app
from jobset_gate.cli.options import namespace as place
from jobset_gate.cli.printers import output as out
from jobset_gate.cli.printers.documents import document_text
from jobset_gate.cli.printers.explanation import wrap
from jobset_gate.cli.printers.output import TerminalStyle
from jobset_gate.kube.errors import ApiError, InvalidResponse, Unauthorized
from jobset_gate.sources.table import LWS, START_GROUP

Check = Callable[[ClusterReader], Awaitable[list[Finding]]]
CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("Kubernetes' version", prerequisites.kubernetes),
    ("JobSet's version", prerequisites.jobset),
    ("JobSet's CRD", prerequisites.jobset_crd),
    ("the webhook configurations", webhook_configurations.check),
    ("the CAs in caBundle", webhook_configurations.bundles),
    ("the certificate that the webhook serves with", webhook_configurations.serving),
    *dry_runs.BARRIERS,
    ("whether wrong settings are refused", dry_runs.bad),
    ("whether a pod of a group is held", dry_runs.pod),
    ("the controller's rights", rights.of_controller),
    ("the webhook's rights", rights.of_webhook),
    ("your own rights", rights.own),
    ("whether a controller leads", gangs.leader),
    ("gangs", gangs.count),
    ("gangs without a barrier", gangs.without_barrier),
    ("Jobs that the webhook has not seen", gangs.unseen_jobs),
    ("start groups", partial(gangs.gated_alone, source=START_GROUP)),
    ("groups of LeaderWorkerSets", partial(gangs.gated_alone, source=LWS)),
    ("kubelets", prerequisites.kubelet_sync),
    ("other schedulers", prerequisites.other_schedulers),
    ("other webhooks for pods", prerequisites.other_webhooks),
    ("the kinds of PodGroup", prerequisites.podgroup_crds),
)
"""In the order of the report."""
NATIVE: Final[tuple[str, Check]] = ("whether the scheduler places native gangs", native_probe.native_gangs)

app = new_app()


@app.command("doctor", epilog="Example: {program} doctor")
async def doctor(
    ctx: typer.Context,
    *,
    namespace: Annotated[
        str | None,
        place(
            "Look at gangs of this namespace only, and make dry runs there; otherwise at all gangs, with dry "
            "runs in the context's namespace."
        ),
    ] = None,
    output: TextOutput = TextFormat.TEXT,
    native: Annotated[
        bool, typer.Option("--native", help="Also try native gang scheduling: this creates two pods for a moment.")
    ] = False,
    cluster: ClusterOptions,
) -> ExitCode:
    """Check the CRD, the webhooks and their certificates, rights, versions, and who else is in the way.

    Each finding comes with its remedy. Changes nothing without --native: the rest is tried by dry runs. What you
    may not see is reported as unknown. Ends with 1 if there is an error among the findings, with 0 otherwise.
    """
    logs.configure(level=LogLevel.ERROR)
    checks = [*CHECKS, *([NATIVE] if native else [])]
    async with cluster.connect() as client:
        found = await findings(ClusterReader(client, namespace, namespace or client.access.namespace), checks)
    rewrite = Invocation(ctx, namespace, cluster).rewrite_commands
    shown = [replace(it, why=rewrite(it.why), remedy=rewrite(it.remedy)) for it in found]
    if output is TextFormat.TEXT:
        look = out.style_of(sys.stdout)
        out.out(to_text(shown, look), look)
    else:
        out.document(document_text(output, to_document(shown)))
    failed = any(it.level is FindingLevel.ERROR for it in found)
    return ExitCode.ERROR if failed else ExitCode.OK


async def findings(reader: ClusterReader, checks: Sequence[tuple[str, Check]] = CHECKS) -> list[Finding]:
    """Of all checks. Raises Unreachable, and Unauthorized."""
    async with asyncio.TaskGroup() as together:
        tasks = [together.create_task(_one(reader, *each)) for each in checks]
    return [it for task in tasks for it in task.result()]


async def _one(reader: ClusterReader, about: str, check: Check) -> list[Finding]:
    """What one of them cannot see keeps none of the others."""
    try:
        return await check(reader)
    except NotReadable as lost:
        return [unknown(about, str(lost), "run it as a user with that right")]
    except Unauthorized:
        raise
    except (ApiError, InvalidResponse) as problem:
        return [unknown(about, str(problem), "try again, and look into the API server's log")]


_STYLES: Final = {
    FindingLevel.OK: "good",
    FindingLevel.WARNING: "wait",
    FindingLevel.ERROR: "bad",
    FindingLevel.UNKNOWN: "dim",
}
_WIDTH: Final = max(len(it) for it in FindingLevel) + 2
_WORST_FIRST: Final = (FindingLevel.ERROR, FindingLevel.WARNING, FindingLevel.UNKNOWN, FindingLevel.OK)


def to_text(findings: Sequence[Finding], look: TerminalStyle) -> str:
    """One paragraph for each, and how many there are of each level."""
    lines = [line for it in findings for line in _lines(it, look)]
    counts = Counter(it.level for it in findings)
    return "\n".join([*lines, "", ", ".join(_count(counts[it], it) for it in _WORST_FIRST if counts[it]) + "."]) + "\n"


def to_document(findings: Sequence[Finding]) -> dict[str, Any]:
    """With the counts of all levels, zeros included."""
    counts = Counter(it.level for it in findings)
    return {
        "kind": "Diagnosis",
        "summary": {str(level): counts[level] for level in _WORST_FIRST},
        "findings": [{"level": str(it.level), "what": it.what, "why": it.why, "remedy": it.remedy} for it in findings],
    }


def _lines(finding: Finding, look: TerminalStyle) -> list[str]:
    width = look.width - _WIDTH if look.width is not None and look.width > 2 * _WIDTH else None
    summary = finding.what + (f": {finding.why}" if finding.why else "")
    remedy = [f"Remedy: {finding.remedy}"] if finding.remedy else []
    first, *rest = [line for it in (summary, *remedy) for line in wrap(it, TerminalStyle(width), rest="")]
    level = look.paint(_STYLES[finding.level], finding.level) + " " * (_WIDTH - len(finding.level))
    return [level + first, *(" " * _WIDTH + line for line in rest)]


def _count(count: int, level: FindingLevel) -> str:
    plural = "s" if count != 1 and level in (FindingLevel.ERROR, FindingLevel.WARNING) else ""
    return f"{count} {level}{plural}"
