"""`render`: what the webhook would make of a manifest; offline."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from jobset_gate import names
from jobset_gate.cli import settings_file
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.manifests import start_groups, workloads
from jobset_gate.cli.manifests.jobsets import ManifestObject, WebhookOutcome, items, judge_item
from jobset_gate.cli.manifests.reader import ManifestDocument, ManifestOptions, read
from jobset_gate.cli.options import Config, new_app
from jobset_gate.cli.printers import output as out
from jobset_gate.cli.printers.documents import document_text
from jobset_gate.objects.unstructured import nested
from jobset_gate.settings import Settings


class ManifestFormat(StrEnum):
    """The form of the output."""

    YAML = "yaml"
    JSON = "json"


app = new_app()


@app.command("render", epilog="Example: {program} render -f jobset.yaml | kubectl diff -f -")
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
    raise typer.Exit(print_rendered(given, settings, output))


def print_rendered(sources: Sequence[str], settings: Settings, output: ManifestFormat) -> ExitCode:
    """Prints all documents with the barrier in each gated JobSet and Job; nothing if any of them is denied."""
    refused = False
    rendered = []
    for document in read(sources):
        judged, pods = dict[str, WebhookOutcome](), list[WebhookOutcome]()
        for item in items(document):
            own = judge_item(item, settings)
            if own is not None:
                judged[item.path] = own
            of_pods = [it.outcome(settings) for it in start_groups.pods_of(item)]
            pods += of_pods
            for line in (*_kind_notes(item), *_complaints(item, [*([own] if own else []), *of_pods])):
                out.err(out.one_line(line))
        refused = refused or any(outcome.field_errors for outcome in (*judged.values(), *pods))
        rendered += [_with(document, judged), *(outcome.stored for outcome in pods)]
    if refused:
        return ExitCode.ERROR
    out.document(document_text(output, *rendered))
    return ExitCode.OK


def _kind_notes(item: ManifestObject) -> Iterator[str]:
    """What a user may expect of an object of this kind, and does not get."""
    kind, group = workloads.kind_of(item.value), str(nested(item.value, "apiVersion")).partition("/")[0]
    if not kind and group == names.JOBSET_GROUP and nested(item.value, "kind") == "JobSet":
        yield f"{item.at('apiVersion')}: warning: only {names.JOBSET_API_VERSION} is known"
    if kind == workloads.TRAIN_JOB or (kind == workloads.CRON_JOB and item.workload is not None):
        yield f"{item.at()}: warning: {workloads.PRINTED_AS_IT_IS[kind]}"


def _complaints(item: ManifestObject, outcomes: Iterable[WebhookOutcome]) -> Iterator[str]:
    for outcome in outcomes:
        yield from (f"{item.at(error.path)}: {error}" for error in outcome.field_errors)
        yield from (f"{item.at(said.partition(': ')[0])}: warning: {said}" for said in outcome.warnings)


def _with(document: ManifestDocument, judged: dict[str, WebhookOutcome]) -> Any:
    """The document's value with the JobSets and Jobs as they would be stored."""
    if "" in judged:
        return judged[""].stored
    if not judged:
        return document.value
    return document.value | {
        "items": [judged[item.path].stored if item.path in judged else item.value for item in items(document)]
    }
