"""CREATE: the barrier and what goes with it are put into the targeted pod templates (A3, A8)."""

from jobset_gate import names
from jobset_gate.barrier.config import canonical
from jobset_gate.barrier.model import Config
from jobset_gate.injection import container, ownership, prefetch
from jobset_gate.objects.json_patch import PatchBuilder
from jobset_gate.objects.unstructured import (
    Json,
    Path,
    ReplicatedJobView,
    annotations_of,
    config_of,
    nested,
    replicated_jobs,
    targets,
)
from jobset_gate.settings import Barrier

FIRST_EPOCH = "0"
DEFAULT_NAMESPACE = "default"
"""Of a manifest that names none; an API server fills in the real one before it asks any webhook."""
DECISION_ANNOTATIONS = (names.VERDICT, names.NUDGE)
"""Annotations that the controller writes on pods. In a template they would open the gate of pods yet unborn."""


def add_barriers(
    edit: PatchBuilder, new: Json, config: Config, settings: Barrier, generated_name: str | None, *, token: str
) -> None:
    """Everything that a JobSet with this config gets when it is made. Done twice is done once."""
    name = nested(new, "metadata", "name") or ""
    if not name and generated_name:
        # Without its name the volume would ask for another ConfigMap than the one the controller makes (A3).
        name = generated_name
        edit.set(("metadata", "name"), name)
    if config_of(new).annotation is None:
        edit.set(("metadata", "annotations", names.CONFIG), canonical(config))
    for job in replicated_jobs(new):
        for key in DECISION_ANNOTATIONS:
            if job.well_formed and key in job.pod_annotations:
                edit.remove((*job.pod_path, "metadata", "annotations", key))
    image = annotations_of(new).get(names.BARRIER_IMAGE)
    stream = container.stream_url(settings, nested(new, "metadata", "namespace") or DEFAULT_NAMESPACE, name, token)
    for job in targets(new, config):
        if job.well_formed:
            _marks(edit, job)
            made = container.build_container(job, config, settings, image, stream=stream)
            before = prefetch.build_containers(job, made) if prefetch.is_requested(new) else []
            _containers(edit, job, [*before, made])
            _volumes(edit, job, [container.build_volume(name), *([prefetch.build_volume()] if before else [])])


def label_paths(job: ReplicatedJobView) -> tuple[Path, Path]:
    """Where the label stands by which the controller selects: on the Jobs and on the pods."""
    return (*job.job_path, "metadata", "labels", names.GATED), (*job.pod_path, "metadata", "labels", names.GATED)


def _marks(edit: PatchBuilder, job: ReplicatedJobView) -> None:
    for path, labels in zip(label_paths(job), job.labels, strict=True):
        if labels.get(names.GATED) != names.GATED_VALUE:
            edit.set(path, names.GATED_VALUE)
    if job.pod_annotations.get(names.EPOCH) != FIRST_EPOCH:
        edit.set((*job.pod_path, "metadata", "annotations", names.EPOCH), FIRST_EPOCH)


def _containers(edit: PatchBuilder, job: ReplicatedJobView, made: list[Json]) -> None:
    """Ours go last: what other init containers do is done before a pod counts as started, sidecars are up (A3)."""
    path = (*job.pod_path, "spec", "initContainers")
    entries = job.spec_list("initContainers")
    old = [index for index, _ in ownership.own_entries(job, "initContainers")]
    rest = len(entries) - len(old)
    if old == list(range(rest, rest + len(made))) and all(map(container.semantically_equal, entries[rest:], made)):
        return
    for index in reversed(old):
        edit.remove((*path, index))
    _append(edit, path, job, made, rest)


def _volumes(edit: PatchBuilder, job: ReplicatedJobView, made: list[Json]) -> None:
    """Ours stay where they are, each once, or go behind the user's."""
    path = (*job.pod_path, "spec", "volumes")
    wanted = {volume["name"]: volume for volume in made}
    old = ownership.own_entries(job, "volumes")
    first = {entry["name"]: index for index, entry in reversed(old) if entry["name"] in wanted}
    surplus = [index for index, _ in old if index not in first.values()]
    for name, index in first.items():
        if not container.semantically_equal(job.spec_list("volumes")[index], wanted[name]):
            edit.replace((*path, index), wanted[name])
    for index in reversed(surplus):
        edit.remove((*path, index))
    new = [volume for volume in made if volume["name"] not in first]
    _append(edit, path, job, new, len(job.spec_list("volumes")) - len(surplus))


def _append(edit: PatchBuilder, path: Path, job: ReplicatedJobView, made: list[Json], length: int) -> None:
    if made and nested(job.pod_spec, str(path[-1])) is None:
        edit.set(path, made)
        return
    for index, entry in enumerate(made, start=length):
        edit.insert((*path, index), entry)
