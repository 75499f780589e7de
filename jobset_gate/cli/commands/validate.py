"""`validate`: all that is wrong with manifests, for people and for CI; offline."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import quote

import typer

from jobset_gate import names
from jobset_gate.cli import settings_file
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.manifests.findings import MALFORMED, WARNING, Finding, Level, ManifestReport, check
from jobset_gate.cli.manifests.reader import ManifestOptions
from jobset_gate.cli.options import Config, new_app
from jobset_gate.cli.printers import output as out
from jobset_gate.cli.printers.documents import document_text
from jobset_gate.objects import terminal_text
from jobset_gate.objects.field_error import CauseType
from jobset_gate.objects.unstructured import Json, nested
from jobset_gate.settings import Settings


class FindingsFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    GITHUB = "github"
    SARIF = "sarif"


app = new_app()


@app.command("validate", epilog="Example: {program} validate -R manifests/ --require-gate -o github")
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
            print_text(report)
        case FindingsFormat.GITHUB:
            print_github(report)
        case FindingsFormat.SARIF:
            print_sarif(report)
        case _:
            out.document(document_text(output, as_document(report)))
    return ExitCode.ERROR if report.of_level(Level.ERROR) else ExitCode.OK


# --- The forms of the report -----------------------------------------------------------------------------------------

REASONS: Final[Mapping[str, str]] = {
    CauseType.INVALID: "The value is not allowed.",
    CauseType.TYPE_INVALID: "The value has the wrong type.",
    CauseType.REQUIRED: "The field must be given.",
    CauseType.FORBIDDEN: "The field may not be given there.",
    CauseType.DUPLICATE: "The value is given twice.",
    CauseType.NOT_FOUND: "The name is not that of anything in the manifest.",
    CauseType.NOT_SUPPORTED: "The field or value is not known.",
    MALFORMED: "The file is not YAML or JSON that Kubernetes reads.",
    WARNING: "It is allowed, but probably not intended.",
}
"""What the reasons of findings mean. Those of fields are the causes that an API server's Status names."""
_SARIF: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def print_text(report: ManifestReport) -> None:
    """A line for each finding and for each object without errors; then the corrected manifests."""
    for it in report.findings:
        title, level = f"{it.object}: " if it.object else "", "warning: " if it.level is Level.WARNING else ""
        out.out(out.one_line(f"{it.file}:{it.line}:{it.column}: {title}{level}{it.text}") + "\n")
    for item, manifest in report.corrected:
        about = terminal_text.lines(out.one_line(item.at()))
        missing = manifest.get("kind") == "Pod" and nested(manifest, "spec", "containers") is None
        note = "# spec.containers is left to its author\n" if missing else ""
        out.document(f"---\n# corrected: {about}\n{note}{document_text('yaml', manifest)}")


def as_document(report: ManifestReport) -> Json:
    found, fine = report.problems, report.of_level(Level.OK)
    return {
        "kind": "Validation",
        "summary": {f"{it}s": len(report.of_level(it)) for it in (Level.ERROR, Level.WARNING)},
        "findings": [_members(it, "level", "object", "field", "reason", "message") for it in found],
        "objects": [_members(it, "object", "message") for it in fine],
    }


def _members(finding: Finding, *wanted: str) -> Json:
    place = {"file": finding.file, "line": finding.line, "column": finding.column}
    return place | {key: str(getattr(finding, key)) for key in wanted}


def print_github(report: ManifestReport) -> None:
    """A workflow command for each finding, which GitHub shows at its line in a pull request."""
    for it in report.problems:
        title = f"{names.PROGRAM}: {it.object or it.file}"
        place = {"file": it.file, "line": it.line, "col": it.column, "title": title}
        given = ",".join(f"{key}={_property(str(value))}" for key, value in place.items())
        out.out(f"::{it.level} {given}::{_data(it.text)}\n")


def print_sarif(report: ManifestReport) -> None:
    """The findings as code scanning reads them."""
    rules = [{"id": str(reason), "shortDescription": {"text": text}} for reason, text in REASONS.items()]
    run = {
        "tool": {"driver": {"name": names.PROGRAM, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(it) for it in report.problems],
    }
    out.document(document_text("json", {"$schema": _SARIF, "version": "2.1.0", "runs": [run]}))


def _result(finding: Finding) -> Json:
    place = {
        "artifactLocation": {"uri": _uri(finding.file)},
        "region": {"startLine": finding.line, "startColumn": finding.column},
    }
    about = f"{finding.object}: " if finding.object else ""
    return {
        "ruleId": finding.reason,
        "level": finding.level,
        "message": {"text": f"{about}{finding.text}"},
        "locations": [{"physicalLocation": place}],
    }


def _uri(file: str) -> str:
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _data(text: str) -> str:
    """Text in a workflow command: a line break would begin another command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
