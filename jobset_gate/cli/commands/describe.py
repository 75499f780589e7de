"""`describe`: everything known of a gang on one page."""

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from jobset_gate.barrier.events import CoreEvent
from jobset_gate.cli.cluster import ClusterOptions, Invocation
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.fetch.events import events_of
from jobset_gate.cli.fetch.leader_worker_set import facts as group_facts
from jobset_gate.cli.fetch.resolver import ExplainedObject, Resolver, open_resolver
from jobset_gate.cli.options import ControllerConfig, Namespace, Owner, Subjects, new_app, program
from jobset_gate.cli.printers import description, output
from jobset_gate.cli.runner import run_and_exit
from jobset_gate.kube.errors import Forbidden

app = new_app()


@app.command("describe", epilog="Example: {program} describe train -n team")
def describe(
    ctx: typer.Context,
    *,
    names: Subjects,
    owner: Owner = "",
    namespace: Namespace = None,
    config: ControllerConfig = None,
    cluster: ClusterOptions,
) -> None:
    """Show what is set and what was decided, Job by Job or pod by pod, why it waits, and its Events.

    For people, as kubectl's describe is; programs ask `why -o json`. Asks the API server only. What you may not
    read is named, and the rest is shown.
    """
    run_and_exit(run(names, owner, Invocation(program(ctx), cluster, namespace), config))


async def run(names: Sequence[str], owner: str, invocation: Invocation, config: Path | None) -> ExitCode:
    """Prints everything known of each of them."""
    style = output.style_of(sys.stdout)
    async with open_resolver(invocation, config) as resolver:
        found, code = await resolver.explain_all(names, owner)
        texts = [await _description(resolver, it, style) for it in found]
    output.out("\n\n".join(texts), style)
    return code


async def _description(resolver: Resolver, found: ExplainedObject, style: output.TerminalStyle) -> str:
    it, status, gang = found.explanation, found.status, found.gang
    rows: description.Rows = ()
    if status is not None:
        facts, rows = description.pod_group_facts(status, it.now), description.member_rows(status)
    elif gang is not None:
        facts = description.gang_facts(gang.gang, it.now)
        rows = () if gang.pods_forbidden else description.gang_rows(gang.gang)
    elif found.groups is not None:
        facts = group_facts(found.groups)
    else:
        facts = (("Name", it.name), ("Namespace", it.namespace))
    return description.description_text(it, facts, rows, await _events(resolver, found), style)


async def _events(resolver: Resolver, found: ExplainedObject) -> list[CoreEvent] | None:
    """None: they may not be read."""
    if found.status is not None and found.status.pod_group is None:
        return []  # they are on its pods
    kind, name = found.explanation.kind, found.explanation.name
    if found.explanation.owner is not None:
        kind, name = found.explanation.owner.kind, found.explanation.owner.name
    try:
        return await events_of(resolver.client, resolver.namespace, kind, name)
    except Forbidden:
        return None
