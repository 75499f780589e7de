"""`validate`: all that is wrong with manifests, for people and for CI; offline."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from jobset_gate.cli import settings_file
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.manifests.findings import Level, check
from jobset_gate.cli.manifests.reader import ManifestOptions
from jobset_gate.cli.options import Config, new_app
from jobset_gate.cli.printers import findings as printer
from jobset_gate.settings import Settings


class FindingsFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    GITHUB = "github"
    SARIF = "sarif"


app = new_app()


@app.command(
    "validate",
    short_help="Say all that is wrong with a manifest's gates and groups.",
    epilog="Example: {program} validate -R manifests/ --require-gate -o github",
)
def validate(
    *,
    manifests: ManifestOptions,
    require_gate: Annotated[
        bool,
        typer.Option(
            "--require-gate",
            help="A manifest without a gated JobSet, Job or TrainJob, a start group or a pod group is an error.",
        ),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings are errors.")] = False,
    output: Annotated[
        FindingsFormat,
        typer.Option("-o", "--output", help="The form of what is printed; github: commands of a GitHub workflow."),
    ] = FindingsFormat.TEXT,
    config: Config = None,
) -> None:
    """Check JobSets, Jobs, pods of start groups and pod groups in manifests as API server and webhook would, offline.

    Finds what the webhook denies, unknown fields and wrong types of JobSets and Jobs, mistyped kinds, API versions and
    annotations, and a config that stands where nothing reads it. Prints one line for each object that is fine and one
    for each thing that is wrong, with file, line, column and field path; then, of group manifests that an API server
    would refuse, the form that it takes. Exits with 1 if anything is wrong.
    """
    given, settings = manifests.files(), settings_file.read(config).admission
    raise typer.Exit(print_checked(given, settings, output, require_gate=require_gate, strict=strict))


def print_checked(
    files: Sequence[str],
    settings: Settings,
    output: FindingsFormat = FindingsFormat.TEXT,
    *,
    require_gate: bool = False,
    strict: bool = False,
) -> ExitCode:
    """Prints what is found in the files; ERROR if any of it is an error."""
    report = check(files, settings, require_gate=require_gate, strict=strict)
    match output:
        case FindingsFormat.TEXT:
            printer.print_text(report)
        case FindingsFormat.GITHUB:
            printer.print_github(report)
        case FindingsFormat.SARIF:
            printer.print_sarif(report)
        case _:
            printer.print_document(report, as_yaml=output is FindingsFormat.YAML)
    return ExitCode.ERROR if report.of_level(Level.ERROR) else ExitCode.OK
