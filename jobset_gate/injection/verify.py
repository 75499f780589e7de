"""Verifies that the object to be stored has its barriers: another webhook may have damaged them."""

from collections.abc import Iterator
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.config import config_of, targets
from jobset_gate.injection import container, prefetch, restore
from jobset_gate.injection.ownership import FIRST_EPOCH, label_paths
from jobset_gate.objects.field_error import FieldError, annotation_path, child_path
from jobset_gate.objects.jobset import ReplicatedJobView, entries_named
from jobset_gate.objects.json_patch import PatchBuilder
from jobset_gate.objects.quantity import semantically_equal
from jobset_gate.objects.unstructured import Json, format_path, nested

_HINT: Final = "jobset-gate's mutating webhook was not called, or another webhook undid its work"


def not_injected(new: Json, old: Json | None) -> list[FieldError]:
    """What the mutating webhook would still change; [] if nothing. For the validating webhook."""
    if old is not None:
        edit = PatchBuilder(new)
        restore.restore_barriers(edit, new, old)
        return [_undone(new, it["path"]) for it in edit.operations]
    given = config_of(new)
    if given.config is None:
        return []
    found: list[FieldError] = []
    if given.annotation is None:
        found.append(FieldError(annotation_path(names.CONFIG), None, f"is missing: {_HINT}"))
    name = nested(new, "metadata", "name") or ""
    for job in targets(new, given.config):
        found += _of(job, name)
        if prefetch.is_requested(new):
            found += _prefetching(job)
    return found


def _of(job: ReplicatedJobView, name: str) -> Iterator[FieldError]:
    """Another webhook may change resources or image, but not what gates the pod."""
    spec = (*job.pod_path, "spec")
    present = [entry for _, entry in entries_named(job.spec_list("initContainers"), names.BARRIER_CONTAINER)]
    if not (
        len(present) == 1 and container.is_barrier(present[0]) and present[0].get("command") == container.command()
    ):
        yield FieldError(
            format_path((*spec, "initContainers")), _names(job, "initContainers"), f"no start barrier: {_HINT}"
        )
    volumes = [entry for _, entry in entries_named(job.spec_list("volumes"), names.VOLUME)]
    if not (len(volumes) == 1 and semantically_equal(volumes[0], container.build_volume(name))):
        yield FieldError(format_path((*spec, "volumes")), _names(job, "volumes"), f"no volume of the barrier: {_HINT}")
    for path, labels in zip(label_paths(job), job.labels, strict=True):
        if labels.get(names.GATED) != names.GATED_VALUE:
            yield FieldError(
                child_path(format_path(path[:-1]), names.GATED), labels.get(names.GATED), f"is missing: {_HINT}"
            )
    if job.pod_annotations.get(names.EPOCH) != FIRST_EPOCH:
        where = format_path((*job.pod_path, "metadata", "annotations"))
        yield FieldError(
            child_path(where, names.EPOCH), job.pod_annotations.get(names.EPOCH), f'must be "{FIRST_EPOCH}": {_HINT}'
        )


def _prefetching(job: ReplicatedJobView) -> Iterator[FieldError]:
    """Each main image runs before the barrier; another webhook may change its registry."""
    spec = (*job.pod_path, "spec")
    before = _before_the_barrier(job)
    made = [entry for entry in before if prefetch.is_reserved(nested(entry, "name"))]
    wanted = [prefetch.copy_command(), *[prefetch.noop_command()] * (len(made) - 1)] if made else []
    whole = all(map(prefetch.is_container, made)) and [nested(entry, "command") for entry in made] == wanted
    if not whole:
        message = f"the containers that prefetch images are not as they should be: {_HINT}"
        yield FieldError(format_path((*spec, "initContainers")), _names(job, "initContainers"), message)
    lacking = prefetch.images_not_pulled(job, before)
    if lacking:
        message = f"nothing brings {', '.join(lacking)} onto the node before the start barrier: {_HINT}"
        yield FieldError(format_path((*spec, "initContainers")), _names(job, "initContainers"), message)
    volumes = [entry for entry in job.spec_list("volumes") if prefetch.is_volume(entry)]
    if made and len(volumes) != 1:
        message = f"no volume for the prefetching of images: {_HINT}"
        yield FieldError(format_path((*spec, "volumes")), _names(job, "volumes"), message)


def _before_the_barrier(job: ReplicatedJobView) -> list[Any]:
    entries = job.spec_list("initContainers")
    place = next((index for index, entry in enumerate(entries) if container.is_barrier(entry)), len(entries))
    return entries[:place]


def _names(job: ReplicatedJobView, key: str) -> list[Any]:
    return [nested(entry, "name") for entry in job.spec_list(key)]


def _undone(new: Json, pointer: str) -> FieldError:
    path = ""
    value: Any = new
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            path = child_path(path, int(key))
            value = value[int(key)] if int(key) < len(value) else None
        else:
            path = child_path(path, key)
            value = nested(value, key)
    return FieldError(path, value, f"is not as the stored JobSet has it: {_HINT}")
