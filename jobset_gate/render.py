"""CREATE: the barrier and what goes with it are put into the targeted pod templates (A3, A8)."""

from jobset_gate import barrier, names, ours, prefetch
from jobset_gate.config import canonical
from jobset_gate.edit import Edit
from jobset_gate.model import Config
from jobset_gate.settings import Barrier
from jobset_gate.template import Json, Path, Replicated, config_of, dig, notes, replicated_jobs, targets

FIRST_EPOCH = "0"
DEFAULT_NAMESPACE = "default"
"""Of a manifest that names none; an API server fills in the real one before it asks any webhook."""
DECISIONS = (names.VERDICT, names.NUDGE)
"""Annotations that the controller writes on pods. In a template they would open the gate of pods yet unborn."""


def gate(edit: Edit, new: Json, config: Config, settings: Barrier, generated_name: str | None, *, token: str) -> None:
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
    stream = barrier.stream(settings, dig(new, "metadata", "namespace") or DEFAULT_NAMESPACE, name, token)
    for job in targets(new, config):
        if job.well_formed:
            _marks(edit, job)
            made = barrier.container(job, config, settings, image, stream=stream)
            before = prefetch.containers(job, made) if prefetch.wanted(new) else []
            _containers(edit, job, [*before, made])
            _volumes(edit, job, [barrier.volume(name), *([prefetch.volume()] if before else [])])


def label_paths(job: Replicated) -> tuple[Path, Path]:
    """Where the label stands by which the controller selects: on the Jobs and on the pods."""
    return (*job.job_path, "metadata", "labels", names.GATED), (*job.pod_path, "metadata", "labels", names.GATED)


def _marks(edit: Edit, job: Replicated) -> None:
    for path, labels in zip(label_paths(job), job.labels, strict=True):
        if labels.get(names.GATED) != names.GATED_VALUE:
            edit.set(path, names.GATED_VALUE)
    if job.pod_notes.get(names.EPOCH) != FIRST_EPOCH:
        edit.set((*job.pod_path, "metadata", "annotations", names.EPOCH), FIRST_EPOCH)


def _containers(edit: Edit, job: Replicated, made: list[Json]) -> None:
    """Ours go last: what other init containers do is done before a pod counts as started, sidecars are up (A3)."""
    path = (*job.pod_path, "spec", "initContainers")
    entries = job.listed("initContainers")
    old = [index for index, _ in ours.present(job, "initContainers")]
    rest = len(entries) - len(old)
    if old == list(range(rest, rest + len(made))) and all(map(barrier.same, entries[rest:], made)):
        return
    for index in reversed(old):
        edit.remove((*path, index))
    _append(edit, path, job, made, rest)


def _volumes(edit: Edit, job: Replicated, made: list[Json]) -> None:
    """Ours stay where they are, each once, or go behind the user's."""
    path = (*job.pod_path, "spec", "volumes")
    wanted = {volume["name"]: volume for volume in made}
    old = ours.present(job, "volumes")
    first = {entry["name"]: index for index, entry in reversed(old) if entry["name"] in wanted}
    surplus = [index for index, _ in old if index not in first.values()]
    for name, index in first.items():
        if not barrier.same(job.listed("volumes")[index], wanted[name]):
            edit.replace((*path, index), wanted[name])
    for index in reversed(surplus):
        edit.remove((*path, index))
    new = [volume for volume in made if volume["name"] not in first]
    _append(edit, path, job, new, len(job.listed("volumes")) - len(surplus))


def _append(edit: Edit, path: Path, job: Replicated, made: list[Json], length: int) -> None:
    if made and dig(job.pod_spec, str(path[-1])) is None:
        edit.set(path, made)
        return
    for index, entry in enumerate(made, start=length):
        edit.insert((*path, index), entry)
