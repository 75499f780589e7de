"""Likely mistakes in one object that no API server and no webhook names: what it lacks then is its gate."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final

from jobset_gate import names
from jobset_gate.cli.manifests import jobs, leader_worker_sets, schema, start_groups, train_jobs
from jobset_gate.cli.manifests.group_corrections import pod_metadata, pod_templates
from jobset_gate.injection.warnings import MOST_ANNOTATIONS, unknown_annotations
from jobset_gate.objects.field_error import CauseType, FieldError, child_path, nearest
from jobset_gate.objects.unstructured import Json, Path, format_path, nested, walk
from jobset_gate.podgroups import fields, formats

_CONFIG_PATH: Final[Path] = ("spec", names.CONFIG_FIELD)
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
    kind = (value.get("apiVersion"), value.get("kind"))
    is_jobset = kind == (names.JOBSET_API_VERSION, "JobSet")
    found = [*_misnamed(*kind, value), *_mistyped_keys(value)]
    if (why_not := _why_not(value, is_jobset=is_jobset)) is not None:
        found += _misplaced(value, why_not)
    if train_jobs.is_train_job(value):
        found += train_jobs.field_errors(value)
    if (gang := jobs.gang_of(value)) is not None:
        yield from schema.job_misfits(gang.get("spec"), ("spec",) if gang is value else (*jobs.TEMPLATE, "spec"))
    if is_jobset or gang is value or leader_worker_sets.gang_of(value) is not None:
        found += unknown_annotations(value)
    if is_jobset:
        name = nested(value, "metadata", "name")
        if isinstance(name, str) and not fields.is_name(name):
            message = "must be a name that an object can have: lower-case letters, digits, - and ."
            found.append(FieldError("metadata.name", name, message))
        yield from schema.misfits(value)
    yield from map(schema.Misfit, found)


def _why_not(value: Json, *, is_jobset: bool) -> Callable[[Path], str] | None:
    """Why the config or annotation at a path of the object has no effect; None where it may have one anywhere."""
    if train_jobs.is_train_job(value):
        return _not_on_train_job
    if is_jobset:
        return _not_on_jobset
    if jobs.is_job(value) or jobs.is_cron_job(value):
        return partial(jobs.why_not_read, value)
    if leader_worker_sets.is_leader_worker_set(value):
        return partial(leader_worker_sets.why_not_read, value)
    return (lambda _: _NO_BARRIER) if pod_templates(value) else None


def _misnamed(version: Any, kind: Any, value: Any) -> Iterator[FieldError]:
    """A kind or an API version that nobody serves, together with the other that says what is meant."""
    word, group = kind if isinstance(kind, str) else "", str(version).partition("/")[0]
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


def _not_on_jobset(path: Path) -> str:
    """Why the config or annotation at `path` of a JobSet has no effect; "": it has."""
    right = _CONFIG_PATH if path[-1] == names.CONFIG_FIELD else ("metadata", "annotations", path[-1])
    return "" if path == right else f"it is read at {format_path(right)} alone"


def _not_on_train_job(path: Path) -> str:
    """The same of a TrainJob."""
    if path[-1] == names.CONFIG_FIELD:
        return train_jobs.HINT
    return "" if train_jobs.reaches_jobset(path) else f"on a TrainJob it belongs into {train_jobs.PLACE}"


def _misplaced(value: Json, why_not: Callable[[Path], str]) -> Iterator[FieldError]:
    """The config and our annotations where nothing reads them: a level too deep, among labels, on a Deployment."""
    for path, member in walk(value):
        is_annotation = path[-2:-1] in (("annotations",), ("labels",)) and path[-1] in names.OUR_JOBSET_ANNOTATIONS
        if path[-1:] != (names.CONFIG_FIELD,) and not is_annotation:
            continue
        if not start_groups.is_template_of_start_group(value, path) and (why := why_not(path)):
            yield FieldError(format_path(path), member, f"has no effect here: {why}", CauseType.FORBIDDEN)
