"""What `why` and `describe` do: look, explain, print; several names are answered one after the other."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from jobset_gate.cli import settings_file
from jobset_gate.cli.documents.writing import to_json, to_yaml
from jobset_gate.cli.exits import Exit
from jobset_gate.cli.looking.explaining import Asking, Found
from jobset_gate.cli.looking.gangs import Absent
from jobset_gate.cli.looking.subjects import named
from jobset_gate.cli.telling import documents, explanations, looks
from jobset_gate.cli.telling.forms import Form
from jobset_gate.kube import access
from jobset_gate.kube.client import Client


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks for."""

    names: Sequence[str]
    namespace: str | None = None
    output: Form = Form.TEXT
    config: Path | None = None
    kubeconfig: str | None = None
    context: str | None = None


async def why(wanted: Wanted) -> Exit:
    """Prints why each of them still waits, or how it was decided."""
    found, code = await _look(wanted)
    if wanted.output is not Form.TEXT:
        document = documents.listed([it.explanation for it in found])
        typer.echo((to_json if wanted.output is Form.JSON else to_yaml)([document]).encode(), nl=False)
        return code
    look = looks.of(sys.stdout)
    _print([explanations.text(it.explanation, look) for it in found])
    return code


def _print(texts: Sequence[str]) -> None:
    typer.echo("\n".join(texts).encode(), nl=False)


async def _look(wanted: Wanted) -> tuple[list[Found], Exit]:
    """Everything that was found; what was not is said on standard error."""
    asked = [named(it) for it in wanted.names]
    settings = settings_file.read(wanted.config).admission.groups
    reached = await access.discover(wanted.kubeconfig, wanted.context)
    found: list[Found] = []
    code = Exit.OK
    async with Client(reached) as client:
        asking = Asking(client, wanted.namespace or reached.namespace, settings, (reached.namespace,))
        for one in asked:
            try:
                found += await asking.about(one)
            except Absent as absent:
                if len(asked) == 1:
                    raise
                sys.stderr.write(f"error: {absent}\n")
                code = Exit.ERROR
    return found, code
