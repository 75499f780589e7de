"""Whether the object that is about to be stored really carries its barriers: another webhook may have damaged them."""

from collections.abc import Iterator
from typing import Any, Final

from jobset_gate import barrier, names, prefetch, restore
from jobset_gate.edit import Edit
from jobset_gate.render import FIRST_EPOCH, label_paths
from jobset_gate.template import Json, Replicated, config_of, dig, dotted, named, targets
from jobset_gate.violation import Violation, at, note

_HINT: Final = "jobset-gate's mutating webhook was not called, or another webhook undid its work"


def missing(new: Json, old: Json | None) -> list[Violation]:
    """What the mutating webhook would have to do still; [] if all is there. For the validating webhook."""
    if old is not None:
        edit = Edit(new)
        restore.gate(edit, new, old)
        return [_undone(new, it["path"]) for it in edit.operations]
    given = config_of(new)
    if given.config is None:
        return []
    found: list[Violation] = []
    if given.note is None:
        found.append(Violation(note(names.CONFIG), None, f"is missing: {_HINT}"))
    name = dig(new, "metadata", "name") or ""
    for job in targets(new, given.config):
        found += _of(job, name)
        if prefetch.wanted(new):
            found += _prefetching(job)
    return found


def _of(job: Replicated, name: str) -> Iterator[Violation]:
    """Resources, image and the like may be another webhook's to change; what holds the pod may not."""
    spec = (*job.pod_path, "spec")
    present = [entry for _, entry in named(job.listed("initContainers"), names.BARRIER_CONTAINER)]
    if not (len(present) == 1 and barrier.is_barrier(present[0]) and present[0].get("command") == barrier.command()):
        yield Violation(dotted((*spec, "initContainers")), _names(job, "initContainers"), f"no start barrier: {_HINT}")
    volumes = [entry for _, entry in named(job.listed("volumes"), names.VOLUME)]
    if not (len(volumes) == 1 and barrier.same(volumes[0], barrier.volume(name))):
        yield Violation(dotted((*spec, "volumes")), _names(job, "volumes"), f"no volume of the barrier: {_HINT}")
    for path, labels in zip(label_paths(job), job.labels, strict=True):
        if labels.get(names.GATED) != names.GATED_VALUE:
            yield Violation(at(dotted(path[:-1]), names.GATED), labels.get(names.GATED), f"is missing: {_HINT}")
    if job.pod_notes.get(names.EPOCH) != FIRST_EPOCH:
        where = dotted((*job.pod_path, "metadata", "annotations"))
        yield Violation(at(where, names.EPOCH), job.pod_notes.get(names.EPOCH), f'must be "{FIRST_EPOCH}": {_HINT}')


def _prefetching(job: Replicated) -> Iterator[Violation]:
    """Each main image is run before the barrier; who pulls it from where is another webhook's to change."""
    spec = (*job.pod_path, "spec")
    before = _before_the_barrier(job)
    made = [entry for entry in before if prefetch.is_reserved(dig(entry, "name"))]
    wanted = [prefetch.copies(), *[prefetch.runs()] * (len(made) - 1)] if made else []
    whole = all(map(prefetch.is_container, made)) and [dig(entry, "command") for entry in made] == wanted
    if not whole:
        message = f"the containers that prefetch images are not as they should be: {_HINT}"
        yield Violation(dotted((*spec, "initContainers")), _names(job, "initContainers"), message)
    lacking = prefetch.uncovered(job, before)
    if lacking:
        message = f"nothing brings {', '.join(lacking)} onto the node before the start barrier: {_HINT}"
        yield Violation(dotted((*spec, "initContainers")), _names(job, "initContainers"), message)
    volumes = [entry for entry in job.listed("volumes") if prefetch.is_volume(entry)]
    if made and len(volumes) != 1:
        message = f"no volume for the prefetching of images: {_HINT}"
        yield Violation(dotted((*spec, "volumes")), _names(job, "volumes"), message)


def _before_the_barrier(job: Replicated) -> list[Any]:
    entries = job.listed("initContainers")
    place = next((index for index, entry in enumerate(entries) if barrier.is_barrier(entry)), len(entries))
    return entries[:place]


def _names(job: Replicated, key: str) -> list[Any]:
    return [dig(entry, "name") for entry in job.listed(key)]


def _undone(new: Json, pointer: str) -> Violation:
    path = ""
    value: Any = new
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            path = at(path, int(key))
            value = value[int(key)] if int(key) < len(value) else None
        else:
            path = at(path, key)
            value = dig(value, key)
    return Violation(path, value, f"is not as the stored JobSet has it: {_HINT}")
