"""CREATE: the barrier, its volume, labels and annotations are put into the targeted pod templates (A3)."""

from jobset_gate import barrier, names
from jobset_gate.config import canonical
from jobset_gate.edit import Edit
from jobset_gate.model import Config
from jobset_gate.settings import Barrier
from jobset_gate.template import Json, Path, Replicated, config_of, dig, named, notes, replicated_jobs, targets

FIRST_EPOCH = "0"
DECISIONS = (names.VERDICT, names.NUDGE)
"""Annotations that the controller writes on pods. In a template they would open the gate of pods yet unborn."""


def gate(edit: Edit, new: Json, config: Config, settings: Barrier, generated_name: str | None) -> None:
    """Everything that a JobSet with this config gets when it is made. Done twice is done once."""
    name = dig(new, "metadata", "name") or ""
    if not name and generated_name:
        # Without its name the volume would ask for another ConfigMap than the one the controller makes (A3).
        name = generated_name
        edit.set(("metadata", "name"), name)
    if config_of(new).note is None:
        edit.set(("metadata", "annotations", names.CONFIG), canonical(config))
    for job in replicated_jobs(new):
        for key in DECISIONS:
            if job.well_formed and key in job.pod_notes:
                edit.remove((*job.pod_path, "metadata", "annotations", key))
    image = notes(new).get(names.BARRIER_IMAGE)
    for job in targets(new, config):
        if job.well_formed:
            _marks(edit, job)
            _container(edit, job, barrier.container(job, config, settings, image))
            _volume(edit, job, barrier.volume(name))


def label_paths(job: Replicated) -> tuple[Path, Path]:
    """Where the label stands by which the controller selects: on the Jobs and on the pods."""
    return (*job.job_path, "metadata", "labels", names.GATED), (*job.pod_path, "metadata", "labels", names.GATED)


def _marks(edit: Edit, job: Replicated) -> None:
    for path, labels in zip(label_paths(job), job.labels, strict=True):
        if labels.get(names.GATED) != names.GATED_VALUE:
            edit.set(path, names.GATED_VALUE)
    if job.pod_notes.get(names.EPOCH) != FIRST_EPOCH:
        edit.set((*job.pod_path, "metadata", "annotations", names.EPOCH), FIRST_EPOCH)


def _container(edit: Edit, job: Replicated, made: Json) -> None:
    """Ours goes last: what other init containers do is done before a pod counts as started, sidecars are up (A3)."""
    path = (*job.pod_path, "spec", "initContainers")
    entries = job.listed("initContainers")
    old = [index for index, entry in named(entries, names.BARRIER_CONTAINER) if barrier.is_barrier(entry)]
    if old == [len(entries) - 1] and barrier.same(entries[-1], made):
        return
    for index in reversed(old):
        edit.remove((*path, index))
    _append(edit, path, job, made, len(entries) - len(old))


def _volume(edit: Edit, job: Replicated, made: Json) -> None:
    path = (*job.pod_path, "spec", "volumes")
    entries = job.listed("volumes")
    old = [index for index, entry in named(entries, names.VOLUME) if barrier.is_volume(entry)]
    for index in reversed(old[1:]):
        edit.remove((*path, index))
    if not old:
        _append(edit, path, job, made, len(entries))
    elif not barrier.same(entries[old[0]], made):
        edit.replace((*path, old[0]), made)


def _append(edit: Edit, path: Path, job: Replicated, made: Json, length: int) -> None:
    if dig(job.pod_spec, str(path[-1])) is None:
        edit.set(path, [made])
    else:
        edit.insert((*path, length), made)
