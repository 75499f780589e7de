"""Verifies that the object to be stored has its barriers: another webhook may have damaged them."""

from collections.abc import Iterator
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.config import targets
from jobset_gate.barrier.source import Source
from jobset_gate.injection import container, inject, prefetch, restore
from jobset_gate.injection.ownership import FIRST_EPOCH, gated_labels
from jobset_gate.objects.field_error import FieldError, annotation_path, format_value
from jobset_gate.objects.json_patch import PatchBuilder
from jobset_gate.objects.template import TemplateView
from jobset_gate.objects.unstructured import Json, Path, format_path, holds, nested
from jobset_gate.sources.objects import config_of, has_marked_templates, source_of

_HINT: Final = "jobset-gate's mutating webhook was not called, or another webhook undid its work"


def not_injected(new: Json, old: Json | None) -> list[FieldError]:
    """What the mutating webhook would still change; [] if nothing. For the validating webhook."""
    edit = PatchBuilder(new)
    if has_marked_templates(new):
        inject.mark_templates(edit, new)
        return [_unmarked(new, path, edit.document) for path in edit.paths]
    if old is not None:
        restore.restore_barriers(edit, new, old)
        return [_undone(new, path, edit.document) for path in edit.paths]
    given = config_of(new)
    if given.config is None:
        return []
    found: list[FieldError] = []
    if given.annotation is None:
        found.append(FieldError(annotation_path(names.CONFIG), None, f"is missing: {_HINT}"))
    source, name = source_of(new), nested(new, "metadata", "name") or ""
    for job in targets(new, given.config):
        found += _of(job, source, name)
        if prefetch.is_requested(new):
            found += _prefetching(job)
    return found


def _of(job: TemplateView, source: Source, name: str) -> Iterator[FieldError]:
    """Another webhook may change resources or image, but not what gates the pod."""
    barriers = _named(job, "initContainers", names.BARRIER_CONTAINER)
    if not (
        len(barriers) == 1 and container.is_barrier(barriers[0]) and barriers[0].get("command") == container.command()
    ):
        yield _error(job, "initContainers", "no start barrier")
    volumes = _named(job, "volumes", names.VOLUME)
    if not (len(volumes) == 1 and holds(volumes[0], container.build_volume(source, name))):
        yield _error(job, "volumes", "no volume of the barrier")
    for path, value in gated_labels(job).items():
        if value != source.gated:
            yield FieldError(format_path(path), value, f"is missing: {_HINT}")
    if (epoch := job.pod_annotations.get(names.EPOCH)) != FIRST_EPOCH:
        where = format_path((*job.pod_path, "metadata", "annotations", names.EPOCH))
        yield FieldError(where, epoch, f'must be "{FIRST_EPOCH}": {_HINT}')


def _prefetching(job: TemplateView) -> Iterator[FieldError]:
    """Each main image runs before the barrier; another webhook may change its registry."""
    before = _before_the_barrier(job)
    made = [entry for entry in before if prefetch.is_reserved(nested(entry, "name"))]
    wanted = [prefetch.copy_command(), *[prefetch.noop_command()] * (len(made) - 1)] if made else []
    if not all(map(prefetch.is_container, made)) or [nested(entry, "command") for entry in made] != wanted:
        yield _error(job, "initContainers", "the containers that prefetch images are not as they should be")
    if lacking := prefetch.images_not_pulled(job, before):
        message = f"nothing brings {', '.join(lacking)} onto the node before the start barrier"
        yield _error(job, "initContainers", message)
    if made and sum(map(prefetch.is_volume, job.spec_list("volumes"))) != 1:
        yield _error(job, "volumes", "no volume for the prefetching of images")


def _named(job: TemplateView, key: str, name: str) -> list[Json]:
    return [entry for entry in job.spec_list(key) if nested(entry, "name") == name]


def _before_the_barrier(job: TemplateView) -> list[Any]:
    entries = job.spec_list("initContainers")
    place = next((index for index, entry in enumerate(entries) if container.is_barrier(entry)), len(entries))
    return entries[:place]


def _error(job: TemplateView, key: str, message: str) -> FieldError:
    """About a list of the pod spec; its value is the names of the entries."""
    present = [nested(entry, "name") for entry in job.spec_list(key)]
    return FieldError(format_path((*job.pod_path, "spec", key)), present, f"{message}: {_HINT}")


def _undone(new: Json, path: Path, restored: Json) -> FieldError:
    value, wanted = nested(new, *path), nested(restored, *path)
    what = f"is not as the stored {source_of(new).kind} has it"
    if path[-1] == names.EPOCH:
        what = f"must be {format_value(wanted)}"
    return FieldError(format_path(path), value, f"{what}: {_HINT}")


def _unmarked(new: Json, path: Path, marked: Json) -> FieldError:
    wanted = nested(marked, *path)
    message = "must not be there" if wanted is None else f"must be {format_value(wanted)}"
    return FieldError(format_path(path), nested(new, *path), f"{message}: {_HINT}")
