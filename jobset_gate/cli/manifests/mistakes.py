"""Likely mistakes in one object that no API server and no webhook names: what it lacks then is its gate."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from jobset_gate import names
from jobset_gate.cli.manifests import schema, start_groups, workloads
from jobset_gate.cli.manifests.group_corrections import pod_metadata, pod_templates
from jobset_gate.injection.warnings import MOST_ANNOTATIONS, unknown_annotations
from jobset_gate.objects.field_error import CauseType, FieldError, child_path, nearest
from jobset_gate.objects.unstructured import Json, Path, as_text, format_path, nested, walk
from jobset_gate.podgroups import fields, formats
from jobset_gate.sources.table import JOB, JOBSET

_GROUP_KEYS: Final = {key: holder for holder, key in formats.NAME_KEYS.values()} | {
    names.ALIBABA_MINIMUM: "labels",
    **dict.fromkeys(formats.KOORDINATOR_KEYS, "annotations"),
}
"""What says on a pod which group it is of, and whether that is a label or an annotation."""
_POD_GROUPS: Final = tuple(
    f"{it}/{names.POD_GROUP_VERSION}" for it in (names.KEP24_GROUP, names.PLUGINS_GROUP, names.SIGS_GROUP)
)
_NO_BARRIER: Final = (
    "only JobSets, Jobs and LeaderWorkerSets have a start barrier, and pods with the label of a start group"
)
_NO_GROUP: Final = (None, "", "v1", "batch/v1", names.JOBSET_VERSION)
"""API versions with which the kind alone says that a JobSet is meant."""


def of(value: Any) -> Iterator[schema.Misfit]:
    """All of one object."""
    if not isinstance(value, dict):
        listed = isinstance(value, list)
        hint = "put --- between objects, or make them the items of a List" if listed else "is this file a manifest?"
        message = f"must be an object, here is {'a list' if listed else 'a text or number'}: {hint}"
        yield schema.Misfit(FieldError("", value, message, CauseType.TYPE_INVALID))
        return
    kind, workload = workloads.kind_of(value), workloads.workload_of(value)
    is_jobset = kind == JOBSET.kind
    found = [*_misnamed(value.get("apiVersion"), value.get("kind"), value), *_mistyped_keys(value)]
    why_not = workloads.why_not_read(value) or ((lambda _: _NO_BARRIER) if pod_templates(value) else None)
    if why_not is not None:
        found += _misplaced(value, why_not)
    found += workloads.train_job_errors(value)
    if workload is not None and kind in (JOB.kind, workloads.CRON_JOB):
        place: Path = ("spec",) if workload is value else (*workloads.JOB_TEMPLATE, "spec")
        yield from schema.job_misfits(workload.get("spec"), place)
    if workload is value:
        found += unknown_annotations(value)
    if is_jobset:
        name = nested(value, "metadata", "name")
        if isinstance(name, str) and not fields.is_name(name):
            message = "must be a name that an object can have: lower-case letters, digits, - and ."
            found.append(FieldError("metadata.name", name, message))
        yield from schema.misfits(value)
    yield from map(schema.Misfit, found)


def _misnamed(version: Any, kind: Any, value: Any) -> Iterator[FieldError]:
    """A kind or an API version that nobody serves, together with the other that says what is meant."""
    word, group = as_text(kind), str(version).partition("/")[0]
    if nearest(word, ("JobSet",)) or (kind is None and nested(value, "spec", "replicatedJobs") is not None):
        similar = "jobset" in group.casefold() or nearest(group, (names.JOBSET_GROUP,)) is not None
        if not similar and version not in _NO_GROUP:
            return
        meant, right = "JobSet", names.JOBSET_API_VERSION
    elif nearest(word, (names.POD_GROUP,)) and version != names.POD_GROUP_VERSION and group != names.NATIVE_GROUP:
        known = formats.api_group(names.POD_GROUP, version) is not None
        meant, right = names.POD_GROUP, version if known else nearest(str(version or ""), _POD_GROUPS) or ""
        if version and not right:
            return
    else:
        return
    for key, given, wanted in (("kind", kind, meant), ("apiVersion", version, right)):
        if given != wanted:
            hint = f"did you mean {wanted}?" if wanted else f"known are {', '.join(_POD_GROUPS)}"
            yield FieldError(key, given, f"{'unknown' if given else 'must be given'}: {hint}", CauseType.NOT_SUPPORTED)


def _mistyped_keys(value: Json) -> Iterator[FieldError]:
    """Labels and annotations of pods that nearly name a group, and those that would as the other of the two."""
    for meta in pod_metadata(value):
        holders = {"labels": meta.labels, "annotations": meta.annotations}
        for holder, given in holders.items():
            for key in islice(given, MOST_ANNOTATIONS):
                right = key if key in _GROUP_KEYS else nearest(key, _GROUP_KEYS)
                if right is None or (right == key and key in holders[_GROUP_KEYS[key]]):
                    continue
                hint = f"did you mean {right}?" if right != key else f"it is read among {_GROUP_KEYS[key]} alone"
                path = child_path(child_path(meta.path, holder), key)
                yield FieldError(path, given[key], f"names no group: {hint}", CauseType.NOT_SUPPORTED)


def _misplaced(value: Json, why_not: Callable[[Path], str]) -> Iterator[FieldError]:
    """The config and our annotations where nothing reads them: a level too deep, among labels, on a Deployment."""
    for path, member in walk(value):
        is_annotation = path[-2:-1] in (("annotations",), ("labels",)) and path[-1] in names.OUR_JOBSET_ANNOTATIONS
        if path[-1:] != (names.CONFIG_FIELD,) and not is_annotation:
            continue
        if not start_groups.is_template_of_start_group(value, path) and (why := why_not(path)):
            yield FieldError(format_path(path), member, f"has no effect here: {why}", CauseType.FORBIDDEN)
