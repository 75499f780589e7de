"""`render`: what the webhook would make of a manifest; offline."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from jobset_gate import names
from jobset_gate.cli import settings_file
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.manifests import start_groups, workloads
from jobset_gate.cli.manifests.jobsets import ManifestObject, WebhookOutcome, items, judge_item
from jobset_gate.cli.manifests.reader import ManifestDocument, ManifestOptions, read
from jobset_gate.cli.manifests.yaml_text import to_json, to_yaml
from jobset_gate.cli.options import Config, new_app
from jobset_gate.cli.printers import output as out
from jobset_gate.objects.unstructured import nested
from jobset_gate.settings import Settings


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
    *,
    manifests: ManifestOptions,
    output: Annotated[
        ManifestFormat, typer.Option("-o", "--output", help="The form of the output.")
    ] = ManifestFormat.YAML,
    config: Config = None,
) -> None:
    """Print manifests as the webhook would have them stored, without any cluster.

    Objects other than JobSets, Jobs and LeaderWorkerSets, and those that ask for no gate, come out as they went in.
    Behind an object with pods of a start group follows such a pod as it would be created, since no template changes;
    behind a LeaderWorkerSet, whose templates get metadata only, a pod of each of them. If any would be refused,
    everything that is wrong goes to standard error and nothing is printed. In the place of what is random
    (the end of a generated name, the token for the gate stream) stand x's.
    """
    given, settings = manifests.files(), settings_file.read(config).admission
    raise typer.Exit(print_rendered(given, settings, as_json=output is ManifestFormat.JSON))


def print_rendered(sources: Sequence[str], settings: Settings, *, as_json: bool) -> ExitCode:
    """Prints all documents with the barrier in each gated JobSet and Job; nothing if any of them is denied."""
    refused = False
    rendered = []
    for document in read(sources):
        judged = {it.path: found for it in items(document) if (found := judge_item(it, settings)) is not None}
        for item in items(document):
            for line in (*_complaints(item, judged.get(item.path)), *_of_pods(item, settings)):
                out.err(out.one_line(line))
        pods = [it.outcome(settings) for item in items(document) for it in start_groups.pods_of(item)]
        refused = refused or any(outcome.field_errors for outcome in (*judged.values(), *pods))
        rendered += [_with(document, judged), *(outcome.stored for outcome in pods)]
    if refused:
        return ExitCode.ERROR
    text = to_json(rendered) if as_json else to_yaml(rendered)
    out.document(text)
    return ExitCode.OK


def _complaints(item: ManifestObject, outcome: WebhookOutcome | None) -> Iterator[str]:
    if outcome is None:
        group = str(nested(item.value, "apiVersion")).partition("/")[0]
        if group == names.JOBSET_GROUP and nested(item.value, "kind") == "JobSet":
            yield f"{item.at('apiVersion')}: warning: only {names.JOBSET_API_VERSION} is known"
        if (kind := workloads.kind_of(item.value)) == workloads.TRAIN_JOB:
            yield f"{item.at()}: warning: {workloads.PRINTED_AS_IT_IS[kind]}"
        return
    for violation in outcome.field_errors:
        yield f"{item.at(violation.path)}: {violation}"
    if (kind := workloads.kind_of(item.value)) == workloads.CRON_JOB:
        yield f"{item.at()}: warning: {workloads.PRINTED_AS_IT_IS[kind]}"
    for warning in outcome.warnings:
        yield f"{item.at(warning.partition(': ')[0])}: warning: {warning}"


def _of_pods(item: ManifestObject, settings: Settings) -> Iterator[str]:
    """The same of its pods of a start group."""
    for it in start_groups.pods_of(item):
        found = it.outcome(settings)
        yield from (f"{item.at(error.path)}: {error}" for error in found.field_errors)
        yield from (f"{item.at(said.partition(': ')[0])}: warning: {said}" for said in found.warnings)


def _with(document: ManifestDocument, judged: dict[str, WebhookOutcome]) -> Any:
    """The document's value with the JobSets and Jobs as they would be stored."""
    if "" in judged:
        return judged[""].stored
    if not judged:
        return document.value
    return document.value | {
        "items": [judged[item.path].stored if item.path in judged else item.value for item in items(document)]
    }
