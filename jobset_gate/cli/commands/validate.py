"""`validate`: everything that is wrong with the gates of a manifest, offline."""

import typer

from jobset_gate.cli import settings_file
from jobset_gate.cli.manifests import commands
from jobset_gate.cli.options import Config, Files, new_app

app = new_app()


@app.command(
    "validate",
    short_help="Say all that is wrong with a manifest's gates and groups.",
    epilog="Example: {program} validate -f jobset.yaml",
)
def validate(files: Files, config: Config = None) -> None:
    """Check the JobSets and pod groups of manifests as the webhook would, without any cluster.

    Prints one line for each object that is fine and one for each thing that is wrong, with file, line, document
    and field path; then, of group manifests that an API server would refuse, the form that it takes. Exits with 1
    if anything is wrong.
    """
    raise typer.Exit(commands.validate(files, settings_file.read(config).admission))
