"""The JSON patch of a gated object: adds barriers on CREATE and restores them on UPDATE (A3, A8)."""

from typing import Final

from jobset_gate import names
from jobset_gate.barrier.config import canonical, targets
from jobset_gate.barrier.model import Config
from jobset_gate.barrier.source import Source
from jobset_gate.injection import container, ownership, prefetch, restore
from jobset_gate.objects.json_patch import PatchBuilder
from jobset_gate.objects.quantity import semantically_equal
from jobset_gate.objects.template import TemplateView, annotations_of, templates_of
from jobset_gate.objects.unstructured import Json, Path, nested
from jobset_gate.settings import Barrier, Settings
from jobset_gate.sources.objects import config_of, source_of

SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""The alphabet of an API server's generated names: no vowels, no characters that look alike."""
SUFFIX_LENGTH: Final = 5
LONGEST_PREFIX: Final = 63 - SUFFIX_LENGTH
DEFAULT_NAMESPACE: Final = "default"
"""Of a manifest without a namespace; an API server sets it before it calls a webhook."""


def injected(new: Json, old: Json | None, *, settings: Settings, suffix: str = "", token: str = "") -> PatchBuilder:
    """The patch that makes the incoming object the one to be stored, with that object; no argument is changed.

    `old` is None on CREATE. `suffix` completes metadata.generateName where there is no name. `token` is the gang's
    secret for the gate stream; without it the barriers get no stream. The object should have no field errors; a part
    that has one is left unchanged. Raises PatchTooLarge.
    """
    edit = PatchBuilder(new)
    if old is not None:
        restore.restore(edit, new, old)
        return edit
    given = config_of(new)
    if given.config is not None:
        if given.annotation is None:
            edit.set(("metadata", "annotations", names.CONFIG), canonical(given.config))
        _add_barriers(edit, new, given.config, settings.barrier, suffix=suffix, token=token)
    return edit


def _add_barriers(edit: PatchBuilder, new: Json, config: Config, settings: Barrier, *, suffix: str, token: str) -> None:
    """Barriers, volumes, labels and annotations of a new gated object. Idempotent."""
    source = source_of(new)
    name, prefix = nested(new, "metadata", "name") or "", nested(new, "metadata", "generateName")
    if not name and suffix and isinstance(prefix, str) and prefix:
        # As an API server completes it: the volume needs the name of the ConfigMap that the controller creates (A3).
        name = prefix[:LONGEST_PREFIX] + suffix
        edit.set(("metadata", "name"), name)
    for job in templates_of(new):
        for key in ownership.DECISION_ANNOTATIONS:
            if job.well_formed and key in job.pod_annotations:
                edit.remove((*job.pod_path, "metadata", "annotations", key))
    image = annotations_of(new).get(names.BARRIER_IMAGE)
    namespace = nested(new, "metadata", "namespace") or DEFAULT_NAMESPACE
    stream = container.stream_url(settings, source, namespace, name, token)
    for job in targets(new, config):
        if job.well_formed:
            _labels_and_epoch(edit, job, source)
            made = container.build_container(job, source, config, settings, image, stream=stream)
            before = prefetch.build_containers(job, made) if prefetch.is_requested(new) else []
            _containers(edit, job, [*before, made])
            _volumes(edit, job, [container.build_volume(source, name), *([prefetch.build_volume()] if before else [])])


def _labels_and_epoch(edit: PatchBuilder, job: TemplateView, source: Source) -> None:
    for path, labels in zip(ownership.label_paths(job), job.labels, strict=True):
        if labels.get(names.GATED) != source.gated:
            edit.set(path, source.gated)
    if job.pod_annotations.get(names.EPOCH) != ownership.FIRST_EPOCH:
        edit.set((*job.pod_path, "metadata", "annotations", names.EPOCH), ownership.FIRST_EPOCH)


def _containers(edit: PatchBuilder, job: TemplateView, made: list[Json]) -> None:
    """Injected containers go last: other init containers have run, and sidecars are up, before a pod counts (A3)."""
    path = (*job.pod_path, "spec", "initContainers")
    entries = job.spec_list("initContainers")
    old = [index for index, _ in ownership.own_entries(job, "initContainers")]
    rest = len(entries) - len(old)
    if old == list(range(rest, rest + len(made))) and all(map(semantically_equal, entries[rest:], made)):
        return
    for index in reversed(old):
        edit.remove((*path, index))
    _append(edit, path, job, made, rest)


def _volumes(edit: PatchBuilder, job: TemplateView, made: list[Json]) -> None:
    """Injected volumes keep their place, each once, or go behind the user's."""
    path = (*job.pod_path, "spec", "volumes")
    wanted = {volume["name"]: volume for volume in made}
    old = ownership.own_entries(job, "volumes")
    first = {entry["name"]: index for index, entry in reversed(old) if entry["name"] in wanted}
    surplus = [index for index, _ in old if index not in first.values()]
    for name, index in first.items():
        if not semantically_equal(job.spec_list("volumes")[index], wanted[name]):
            edit.replace((*path, index), wanted[name])
    for index in reversed(surplus):
        edit.remove((*path, index))
    new = [volume for volume in made if volume["name"] not in first]
    _append(edit, path, job, new, len(job.spec_list("volumes")) - len(surplus))


def _append(edit: PatchBuilder, path: Path, job: TemplateView, made: list[Json], length: int) -> None:
    if made and nested(job.pod_spec, str(path[-1])) is None:
        edit.set(path, made)
        return
    for index, entry in enumerate(made, start=length):
        edit.insert((*path, index), entry)
