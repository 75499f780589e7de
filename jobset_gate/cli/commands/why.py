"""`why`: why a gang still waits, and what to do about it."""

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from jobset_gate.cli.cluster import ClusterOptions, Invocation
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.fetch.resolver import open_resolver
from jobset_gate.cli.options import (
    ControllerConfig,
    Namespace,
    Owner,
    Subjects,
    TextFormat,
    TextOutput,
    new_app,
    program,
)
from jobset_gate.cli.printers import output as out
from jobset_gate.cli.printers.documents import document_text, explanations_json
from jobset_gate.cli.printers.explanation import explanation_text
from jobset_gate.cli.runner import run_and_exit
from jobset_gate.explain.model import GangState

app = new_app()


@app.command("why", epilog="Example: {program} why train -n team")
def why(
    ctx: typer.Context,
    *,
    names: Subjects,
    owner: Owner = "",
    namespace: Namespace = None,
    output: TextOutput = TextFormat.TEXT,
    config: ControllerConfig = None,
    cluster: ClusterOptions,
) -> None:
    """Say how many pods have started of how many, and of each missing one why.

    In the words of the scheduler, the kubelet or the quota, grouped, longest waiting first; then how much time is
    left, what happens after that, and the next command to run. Asks the API server only, so it works without a
    controller, and then says so. What you may not read is named, and the rest is shown.
    """
    run_and_exit(run(names, owner, output, Invocation(program(ctx), cluster, namespace), config))


async def run(
    names: Sequence[str], owner: str, form: TextFormat, invocation: Invocation, config: Path | None
) -> ExitCode:
    """Prints of each why it still waits, or how it was decided."""
    async with open_resolver(invocation, config) as resolver:
        found, code = await resolver.explain_all(names, owner)
    # Of a LeaderWorkerSet as a whole the groups that have started go without saying.
    explanations = [it.explanation for it in found if not (it.is_part and it.explanation.state == GangState.RELEASED)]
    if form is not TextFormat.TEXT:
        document = explanations_json(explanations, several=len(names) > 1 or any(it.groups for it in found))
        out.document(document_text(form, document))
        return code
    style = out.style_of(sys.stdout)
    out.out("\n".join(explanation_text(it, style) for it in explanations), style)
    return code
