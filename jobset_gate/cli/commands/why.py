"""`why`: why a gang still waits, and what to do about it."""

import sys

from jobset_gate.cli.cluster import Invocation
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.fetch.resolver import open_resolver
from jobset_gate.cli.options import ControllerConfig, Owner, Subjects, TextFormat, TextOutput, new_app
from jobset_gate.cli.printers import output as out
from jobset_gate.cli.printers.documents import document_text, explanations_json
from jobset_gate.cli.printers.explanation import explanation_text
from jobset_gate.explain.model import GangState

app = new_app()


@app.command("why", epilog="Example: {program} why train -n team")
async def why(
    *,
    names: Subjects,
    owner: Owner = "",
    output: TextOutput = TextFormat.TEXT,
    config: ControllerConfig = None,
    invocation: Invocation,
) -> ExitCode:
    """Say how many pods have started of how many, and of each missing one why.

    In the words of the scheduler, the kubelet or the quota, grouped, longest waiting first; then how much time is
    left, what happens after that, and the next command to run. Asks the API server only, so it works without a
    controller, and then says so. What you may not read is named, and the rest is shown.
    """
    async with open_resolver(invocation, config) as resolver:
        found, code = await resolver.explain_all(names, owner)
    # Of a LeaderWorkerSet as a whole the groups that have started go without saying.
    explanations = [it.explanation for it in found if not (it.is_part and it.explanation.state == GangState.RELEASED)]
    if output is not TextFormat.TEXT:
        document = explanations_json(explanations, several=len(names) > 1 or any(it.groups for it in found))
        out.document(document_text(output, document))
        return code
    style = out.style_of(sys.stdout)
    out.out("\n".join(explanation_text(it, style) for it in explanations), style)
    return code
