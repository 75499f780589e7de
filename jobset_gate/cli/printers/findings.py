"""A report on manifests: as text, as JSON or YAML, as commands of a GitHub workflow, as SARIF 2.1.0."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

from jobset_gate import names
from jobset_gate.cli.manifests.findings import MALFORMED, WARNING, Finding, Level, ManifestReport
from jobset_gate.cli.manifests.yaml_text import to_json, to_yaml
from jobset_gate.cli.printers import output as out
from jobset_gate.objects import terminal_text
from jobset_gate.objects.field_error import CauseType
from jobset_gate.objects.unstructured import nested

Json = dict[str, Any]

REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
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
)
"""What the reasons of findings mean. Those of fields are the causes that an API server's Status names."""
_SARIF: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def print_text(report: ManifestReport) -> None:
    """A line for each finding and for each object without errors; then the corrected manifests."""
    for it in report.findings:
        title, level = f"{it.object}: " if it.object else "", "warning: " if it.level is Level.WARNING else ""
        out.out(one_line(f"{it.file}:{it.line}:{it.column}: {title}{level}{it.text}") + "\n")
    for item, manifest in report.corrected:
        about = terminal_text.lines(one_line(item.at()))
        missing = manifest.get("kind") == "Pod" and nested(manifest, "spec", "containers") is None
        note = "# spec.containers is left to its author\n" if missing else ""
        out.document(f"---\n# corrected: {about}\n{note}{to_yaml([manifest])}")


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


def print_document(report: ManifestReport, *, as_yaml: bool) -> None:
    """The report for programs, as JSON or YAML."""
    out.document((to_yaml if as_yaml else to_json)([as_document(report)]))


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
    out.document(to_json([{"$schema": _SARIF, "version": "2.1.0", "runs": [run]}]))


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


def one_line(text: str) -> str:
    """Keys and names of a manifest may hold line breaks, and would fake further lines."""
    return text.replace("\n", "\\n").replace("\r", "\\r")
