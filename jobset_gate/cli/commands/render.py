"""`render`: what the webhook would make of a manifest, offline."""

from enum import StrEnum
from typing import Annotated

import typer

from jobset_gate.cli.options import Config, Files


class ManifestFormat(StrEnum):
    """The form of the output."""

    YAML = "yaml"
    JSON = "json"


def register(app: typer.Typer, program: str) -> None:
    """Adds the command."""

    @app.command(
        "render",
        short_help="Print what the webhook would make of a manifest.",
        epilog=f"Example: {program} render -f jobset.yaml | kubectl diff -f -",
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
        from jobset_gate.cli import settings_file  # noqa: PLC0415 - see app.py
        from jobset_gate.cli.manifests import commands  # noqa: PLC0415 - see app.py

        settings = settings_file.read(config).admission
        raise typer.Exit(commands.render(files, settings, as_json=output is ManifestFormat.JSON))
