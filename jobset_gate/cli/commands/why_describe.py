"""What `why` and `describe` do: look, explain, print; several names are answered one after the other."""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from jobset_gate.barrier.events import CoreEvent
from jobset_gate.cli import settings_file
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.fetch import events
from jobset_gate.cli.fetch.objects import ObjectNotFound
from jobset_gate.cli.fetch.resolver import ExplainedObject, Resolver
from jobset_gate.cli.invocation import Invocation
from jobset_gate.cli.manifests.writer import to_json, to_yaml
from jobset_gate.cli.printers import description, explanation, explanation_json, output, terminal
from jobset_gate.cli.printers.text_format import TextFormat
from jobset_gate.cli.resource_args import parse_resource
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """What the command line asks for."""

    names: Sequence[str]
    namespace: str | None = None
    output: TextFormat = TextFormat.TEXT
    config: Path | None = None
    kubeconfig: str | None = None
    context: str | None = None
    program: str = "kubectl jobset-gate"
    """What we were called by: the commands that are printed begin with it."""

    @property
    def invocation(self) -> Invocation:
        """Who is to run these commands."""
        return Invocation(self.program, self.kubeconfig, self.context, self.namespace)


async def why(wanted: ExplainOptions) -> ExitCode:
    """Prints why each of them still waits, or how it was decided."""
    async with _asking(wanted) as asking:
        found, code = await _look(asking, wanted)
    if wanted.output is not TextFormat.TEXT:
        document = explanation_json.explanations_json([it.explanation for it in found], several=len(wanted.names) > 1)
        output.document((to_json if wanted.output is TextFormat.JSON else to_yaml)([document]))
        return code
    look = terminal.style_of(sys.stdout)
    output.out("\n".join(explanation.explanation_text(it.explanation, look) for it in found), look)
    return code


async def describe(wanted: ExplainOptions) -> ExitCode:
    """Prints everything known of each of them."""
    look = terminal.style_of(sys.stdout)
    async with _asking(wanted) as asking:
        found, code = await _look(asking, wanted)
        texts = [await _description(asking, it, look) for it in found]
    output.out("\n\n".join(texts), look)
    return code


async def _description(asking: Resolver, found: ExplainedObject, look: terminal.TerminalStyle) -> str:
    told = found.explanation
    if found.report is not None:
        facts, rows = description.pod_group_facts(found.report, told.now), description.member_rows(found.report)
    elif found.jobset is not None and found.jobset.seen is not None:
        facts = description.jobset_facts(found.jobset.seen, told.now)
        rows = () if found.jobset.blind else description.job_rows(found.jobset.seen)
    else:
        facts, rows = (("Name", told.name), ("Namespace", told.namespace)), ()
    return description.description_text(told, facts, rows, await _events(asking, found), look)


async def _events(asking: Resolver, found: ExplainedObject) -> list[CoreEvent] | None:
    name, kind = found.explanation.name, found.explanation.kind
    if found.report is not None and found.report.pod_group is None:
        return []  # they are on its pods
    try:
        return await events.events_of(asking.client, asking.namespace, kind, name)
    except Forbidden:
        return None


@asynccontextmanager
async def _asking(wanted: ExplainOptions) -> AsyncIterator[Resolver]:
    settings = settings_file.read(wanted.config).admission.groups
    reached = await access.load_access(wanted.kubeconfig, wanted.context)
    async with Client(reached) as client:
        yield Resolver(client, wanted.namespace or reached.namespace, settings, (reached.namespace,))


async def _look(asking: Resolver, wanted: ExplainOptions) -> tuple[list[ExplainedObject], ExitCode]:
    """Everything that was found, with commands for who asks; of several names, what was not is said on stderr."""
    asked = [parse_resource(it) for it in wanted.names]
    found: list[ExplainedObject] = []
    code = ExitCode.OK
    for one in asked:
        try:
            found += await asking.resolve(one)
        except ObjectNotFound as absent:
            if len(asked) == 1:
                raise
            output.err(f"error: {absent}")
            code = ExitCode.ERROR
    return [replace(it, explanation=wanted.invocation.rewrite_explanation(it.explanation)) for it in found], code
