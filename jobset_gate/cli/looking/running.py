"""What `why` and `describe` do: look, explain, print; several names are answered one after the other."""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from jobset_gate.cli import settings_file
from jobset_gate.cli.caller import Caller
from jobset_gate.cli.documents.writing import to_json, to_yaml
from jobset_gate.cli.exits import Exit
from jobset_gate.cli.looking import news
from jobset_gate.cli.looking.explaining import Asking, Found
from jobset_gate.cli.looking.objects import Absent
from jobset_gate.cli.looking.subjects import named
from jobset_gate.cli.telling import descriptions, documents, explanations, looks, output
from jobset_gate.cli.telling.forms import Form
from jobset_gate.heard import Event
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks for."""

    names: Sequence[str]
    namespace: str | None = None
    output: Form = Form.TEXT
    config: Path | None = None
    kubeconfig: str | None = None
    context: str | None = None
    program: str = "kubectl jobset-gate"
    """What we were called by: the commands that are printed begin with it."""

    @property
    def caller(self) -> Caller:
        """Who is to run these commands."""
        return Caller(self.program, self.kubeconfig, self.context, self.namespace)


async def why(wanted: Wanted) -> Exit:
    """Prints why each of them still waits, or how it was decided."""
    async with _asking(wanted) as asking:
        found, code = await _look(asking, wanted)
    if wanted.output is not Form.TEXT:
        document = documents.listed([it.explanation for it in found], several=len(wanted.names) > 1)
        output.document((to_json if wanted.output is Form.JSON else to_yaml)([document]))
        return code
    look = looks.of(sys.stdout)
    output.out("\n".join(explanations.text(it.explanation, look) for it in found), look)
    return code


async def describe(wanted: Wanted) -> Exit:
    """Prints everything known of each of them."""
    look = looks.of(sys.stdout)
    async with _asking(wanted) as asking:
        found, code = await _look(asking, wanted)
        texts = [await _description(asking, it, look) for it in found]
    output.out("\n\n".join(texts), look)
    return code


async def _description(asking: Asking, found: Found, look: looks.Look) -> str:
    told = found.explanation
    if found.report is not None:
        facts, rows = descriptions.of_group(found.report, told.now), descriptions.members(found.report)
    elif found.sight is not None and found.sight.seen is not None:
        facts = descriptions.of_jobset(found.sight.seen, told.now)
        rows = () if found.sight.blind else descriptions.jobs(found.sight.seen)
    else:
        facts, rows = (("Name", told.name), ("Namespace", told.namespace)), ()
    return descriptions.text(told, facts, rows, await _events(asking, found), look)


async def _events(asking: Asking, found: Found) -> list[Event] | None:
    name, kind = found.explanation.name, found.explanation.kind
    if found.report is not None and found.report.pod_group is None:
        return []  # they are on its pods
    try:
        return await news.about(asking.client, asking.namespace, kind, name)
    except Forbidden:
        return None


@asynccontextmanager
async def _asking(wanted: Wanted) -> AsyncIterator[Asking]:
    settings = settings_file.read(wanted.config).admission.groups
    reached = await access.discover(wanted.kubeconfig, wanted.context)
    async with Client(reached) as client:
        yield Asking(client, wanted.namespace or reached.namespace, settings, (reached.namespace,))


async def _look(asking: Asking, wanted: Wanted) -> tuple[list[Found], Exit]:
    """Everything that was found, with commands for who asks; of several names, what was not is said on stderr."""
    asked = [named(it) for it in wanted.names]
    found: list[Found] = []
    code = Exit.OK
    for one in asked:
        try:
            found += await asking.about(one)
        except Absent as absent:
            if len(asked) == 1:
                raise
            output.err(f"error: {absent}")
            code = Exit.ERROR
    return [replace(it, explanation=wanted.caller.explanation(it.explanation)) for it in found], code
