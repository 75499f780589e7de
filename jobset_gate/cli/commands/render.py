"""`render`: what the webhook would make of a manifest, offline."""

from enum import StrEnum
from typing import Annotated

import typer

from jobset_gate.cli import settings_file
from jobset_gate.cli.manifests import commands
from jobset_gate.cli.options import Config, Files, new_app


class ManifestFormat(StrEnum):
    """The form of the output."""

    YAML = "yaml"
    JSON = "json"


app = new_app()


@app.command(
    "render",
    short_help="Print what the webhook would make of a manifest.",
    epilog="Example: {program} render -f jobset.yaml | kubectl diff -f -",
)
def render(
    files: Files,
    output: Annotated[
        ManifestFormat, typer.Option("-o", "--output", help="The form of the output.")
    ] = ManifestFormat.YAML,
    config: Config = None,
) -> None:
    """Print manifests as the webhook would have them stored, without any cluster.

    Objects other than JobSets, and JobSets that ask for no gate, come out as they went in. If any JobSet would be
    refused, everything that is wrong goes to standard error and nothing is printed. In the place of what is random
    (the end of a generated name, the token for the gate stream) stand x's.
    """
    settings = settings_file.read(config).admission
    raise typer.Exit(commands.render(files, settings, as_json=output is ManifestFormat.JSON))
