"""What `render` and `validate` do."""

from collections.abc import Iterator, Sequence
from typing import Any

from jobset_gate import names
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.manifests import pod_groups
from jobset_gate.cli.manifests.jobsets import ManifestObject, WebhookOutcome, items, judge, summary
from jobset_gate.cli.manifests.reader import ManifestDocument, read
from jobset_gate.cli.manifests.writer import to_json, to_yaml
from jobset_gate.cli.printers import output
from jobset_gate.objects import terminal_text
from jobset_gate.objects.unstructured import nested
from jobset_gate.settings import Settings

UNKNOWN = "neither a JobSet nor part of a group, not looked at"


def render(sources: Sequence[str], settings: Settings, *, as_json: bool) -> ExitCode:
    """Prints all documents with the barrier in each gated JobSet; nothing if any of them is denied."""
    refused = False
    rendered = []
    for document in read(sources):
        judged = {item.path: judge(item.value, settings) for item in items(document) if item.is_jobset}
        for item in items(document):
            outcome = judged.get(item.path)
            for line in _complaints(item, outcome):
                output.err(_one_line(line))
        refused = refused or any(outcome.field_errors for outcome in judged.values())
        rendered.append(_with(document, judged))
    if refused:
        return ExitCode.ERROR
    text = to_json(rendered) if as_json else to_yaml(rendered)
    output.document(text)
    return ExitCode.OK


def validate(sources: Sequence[str], settings: Settings) -> ExitCode:
    """Prints a line for each object, or for each of its field errors; then the corrected manifests."""
    code = ExitCode.OK
    judged = []
    for document in read(sources, split=True):
        for item in items(document):
            outcome = judge(item.value, settings) if item.is_jobset else None
            group = pod_groups.judge(item)
            wrong = [*_complaints(item, outcome), *pod_groups.format_errors(group)]
            if (outcome is not None and outcome.field_errors) or group.field_errors:
                code = ExitCode.ERROR
            else:
                results = [summary(item.value)] if outcome else []
                results += group.summaries
                output.out(_one_line(f"{item.at()}: {'ok: ' + '; '.join(results) if results else UNKNOWN}") + "\n")
            for line in wrong:
                output.out(_one_line(line) + "\n")
            judged.append(group)
    for line in pod_groups.between(judged):
        output.out(_one_line(line) + "\n")
        code = code if pod_groups.WARNING in line else ExitCode.ERROR
    _print_corrected(judged)
    return code


def _print_corrected(judged: Sequence[pod_groups.GroupFindings]) -> None:
    for each in judged:
        if each.corrected is not None:
            about = terminal_text.lines(_one_line(each.item.at()))
            text = f"---\n# corrected: {about}\n{to_yaml([each.corrected])}"
            output.document(text)


def _one_line(text: str) -> str:
    """Keys and names of a manifest may hold line breaks, and would fake further lines."""
    return text.replace("\n", "\\n").replace("\r", "\\r")


def _complaints(item: ManifestObject, outcome: WebhookOutcome | None) -> Iterator[str]:
    if outcome is None:
        group = str(nested(item.value, "apiVersion")).partition("/")[0]
        if group == names.JOBSET_GROUP and nested(item.value, "kind") == "JobSet":
            yield f"{item.at('apiVersion')}: warning: only {names.JOBSET_API_VERSION} is known"
        return
    for violation in outcome.field_errors:
        yield f"{item.at(violation.path)}: {violation}"
    for warning in outcome.warnings:
        yield f"{item.at(warning.partition(': ')[0])}: warning: {warning}"


def _with(document: ManifestDocument, judged: dict[str, WebhookOutcome]) -> Any:
    """The document's value with the JobSets as they would be stored."""
    if "" in judged:
        return judged[""].stored
    if not judged:
        return document.value
    return document.value | {
        "items": [judged[item.path].stored if item.path in judged else item.value for item in items(document)]
    }
