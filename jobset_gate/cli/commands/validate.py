"""`validate`: everything that is wrong with the gates of a manifest, offline."""

import typer

from jobset_gate.cli.options import Config, Files


def register(app: typer.Typer, program: str) -> None:
    """Adds the command."""

    @app.command(
        "validate",
        short_help="Say all that is wrong with a manifest's gates and groups.",
        epilog=f"Example: {program} validate -f jobset.yaml",
    )
    def validate(files: Files, config: Config = None) -> None:
        """Check the JobSets and pod groups of manifests as the webhook would, without any cluster.

        Prints one line for each object that is fine and one for each thing that is wrong, with file, line, document
        and field path; then, of group manifests that an API server would refuse, the form that it takes. Exits with 1
        if anything is wrong.
        """
        from jobset_gate.cli import settings_file  # noqa: PLC0415 - see app.py
        from jobset_gate.cli.manifests import commands  # noqa: PLC0415 - see app.py

        raise typer.Exit(commands.validate(files, settings_file.read(config).admission))
