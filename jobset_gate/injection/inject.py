"""The JSON patch of a gated object: adds barriers on CREATE and restores them on UPDATE (A3, A8)."""

from typing import Any, Final, TypedDict, Unpack

from jobset_gate import names
from jobset_gate.barrier.config import canonical, targets
from jobset_gate.barrier.model import Config
from jobset_gate.barrier.source import Source
from jobset_gate.injection import container, ownership, prefetch, restore
from jobset_gate.objects.json_patch import PatchBuilder
from jobset_gate.objects.quantity import semantically_equal
from jobset_gate.objects.template import TemplateView, annotations_of, templates_of
from jobset_gate.objects.unstructured import Json, as_list, as_map, holds, nested
from jobset_gate.settings import Barrier, Settings
from jobset_gate.sources.objects import config_of, has_marked_templates, source_of

SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""The alphabet of an API server's generated names: no vowels, no characters that look alike."""
SUFFIX_LENGTH: Final = 5
LONGEST_PREFIX: Final = 63 - SUFFIX_LENGTH
DEFAULT_NAMESPACE: Final = "default"
"""Of a manifest without a namespace; an API server sets it before it calls a webhook."""
COPIED: Final = (names.CONFIG, names.PREFETCH_IMAGES, names.BARRIER_IMAGE)
"""Annotations of the workload that its pods need when they are created; the others are read from the workload."""


class Drawn(TypedDict, total=False):
    """What only the request can give."""

    suffix: str
    """Completes metadata.generateName where there is no name."""
    token: str
    """The secret of the gang, or of a pod that is gated alone, for the gate stream; without it there is no stream."""
    namespace: str
    """Of an object whose metadata has none."""


def injected(new: Json, old: Json | None, *, settings: Settings, **drawn: Unpack[Drawn]) -> PatchBuilder:
    """The patch that makes the incoming object the one to be stored, with that object; no argument is changed.

    `old` is None on CREATE. The object should have no field errors; a part that has one is left unchanged. Raises
    PatchTooLarge.
    """
    edit = PatchBuilder(new)
    if has_marked_templates(new):
        mark_templates(edit, new)
        return edit
    if old is not None:
        restore.restore(edit, new, old)
        return edit
    given = config_of(new)
    if given.config is not None:
        if given.annotation is None:
            edit.set(("metadata", "annotations", names.CONFIG), canonical(given.config))
        _add_barriers(edit, new, given.config, settings.barrier, drawn)
    return edit


def _add_barriers(edit: PatchBuilder, new: Json, config: Config, settings: Barrier, drawn: Drawn) -> None:
    """Barriers, volumes, labels and annotations of a new gated object. Idempotent."""
    source, suffix, token = source_of(new), drawn.get("suffix"), drawn.get("token", "")
    name, prefix = nested(new, "metadata", "name") or "", nested(new, "metadata", "generateName")
    if not name and suffix and isinstance(prefix, str) and prefix:
        # As an API server completes it: the volume needs the name of the ConfigMap that the controller creates (A3).
        name = prefix[:LONGEST_PREFIX] + suffix
        edit.set(("metadata", "name"), name)
    for job in templates_of(new):
        for key in ownership.DECISION_ANNOTATIONS if job.well_formed else ():
            ownership.set_annotation(edit, job, key, None)
    image = annotations_of(new).get(names.BARRIER_IMAGE)
    namespace = nested(new, "metadata", "namespace") or drawn.get("namespace") or DEFAULT_NAMESPACE
    stream = container.stream_url(settings, source, namespace, name, token)
    for job in targets(new, config):
        if job.well_formed:
            made = container.build_container(job, source, config, settings, image, stream=stream)
            before = prefetch.build_containers(job, made) if prefetch.is_requested(new) else []
            containers = [*before, made]
            volumes = [*container.build_volumes(source, name), *([prefetch.build_volume()] if before else [])]
            if source.gates_pods:
                _token(edit, job, token)
                containers = _as_they_are(job, "initContainers", containers)
                volumes = _as_they_are(job, "volumes", volumes)
            else:
                _labels_and_epoch(edit, job, source)
            _set_list(edit, job, "initContainers", _with_containers(job, containers))
            _set_list(edit, job, "volumes", _with_volumes(job, volumes))


def _token(edit: PatchBuilder, job: TemplateView, token: str) -> None:
    """A new one, unless this pod has got one with its barrier in an earlier call."""
    if token and not (container.has_barrier(job) and job.pod_annotations.get(names.TOKEN)):
        ownership.set_annotation(edit, job, names.TOKEN, token)


def _as_they_are(job: TemplateView, key: str, made: list[Json]) -> list[Json]:
    """Entries of an earlier call stay with what has been added to them: by the API server, or by other webhooks."""
    there = {entry["name"]: entry for _, entry in ownership.own_entries(job, key)}
    return [there[it["name"]] if _is_current(there.get(it["name"]), it) else it for it in made]


def _is_current(entry: Any, made: Json) -> bool:
    """Whether an entry does what a new one would. Other webhooks may change its resources, and a barrier's image."""
    whole: list[str] = ["command", "projected", "emptyDir"]
    if made.get("command") == prefetch.noop_command():
        whole.append("image")
    kept = all(holds(nested(entry, key), made[key]) for key in whole if key in made)
    lists = [(as_list(nested(entry, key)), made.get(key, [])) for key in ("env", "volumeMounts")]
    return kept and all(any(holds(it, wanted) for it in there) for there, wants in lists for wanted in wants)


def _labels_and_epoch(edit: PatchBuilder, job: TemplateView, source: Source) -> None:
    for path, value in ownership.gated_labels(job).items():
        if value != source.gated:
            edit.set(path, source.gated)
    ownership.set_annotation(edit, job, names.EPOCH, ownership.FIRST_EPOCH)


def _with_containers(job: TemplateView, made: list[Json]) -> list[Any]:
    """Injected containers go last: other init containers have run, and sidecars are up, before a pod counts (A3)."""
    ours = {index for index, _ in ownership.own_entries(job, "initContainers")}
    return [it for index, it in enumerate(job.spec_list("initContainers")) if index not in ours] + made


def _with_volumes(job: TemplateView, made: list[Json]) -> list[Any]:
    """Injected volumes keep their place, each once, or go behind the user's."""
    ours = {index for index, _ in ownership.own_entries(job, "volumes")}
    left = {volume["name"]: volume for volume in made}
    wanted = []
    for index, entry in enumerate(job.spec_list("volumes")):
        if index not in ours:
            wanted.append(entry)
        elif entry["name"] in left:
            wanted.append(left.pop(entry["name"]))
    return [*wanted, *left.values()]


def _set_list(edit: PatchBuilder, job: TemplateView, key: str, wanted: list[Any]) -> None:
    entries = job.spec_list(key)
    if len(entries) != len(wanted) or not all(map(semantically_equal, entries, wanted)):
        edit.set((*job.pod_path, "spec", key), wanted)


def mark_templates(edit: PatchBuilder, obj: Json) -> None:
    """CREATE and UPDATE of a workload whose pods are gated one by one: what its pod templates say to its pods (K3).

    The label by which the pods are sent, and the workload's annotations with their text; without a config none of
    them. Idempotent; it follows the workload alone. Nothing of it depends on version, image or settings: no upgrade of
    jobset-gate changes a template, which would start a rolling update.
    """
    given = annotations_of(obj)
    gated = given.get(names.CONFIG) is not None
    labels = {names.GATED: source_of(obj).gated if gated else None}
    annotations = {key: given.get(key) if gated else None for key in COPIED}
    for template in templates_of(obj):
        if template.well_formed:
            _mark(edit, template, "labels", labels)
            _mark(edit, template, "annotations", annotations)


def _mark(edit: PatchBuilder, template: TemplateView, holder: str, wanted: Json) -> None:
    """None: is not there. A map that nothing else is in goes with its last entry."""
    path = (*template.pod_path, "metadata", holder)
    there = as_map(nested(template.pod_template, "metadata", holder))
    surplus = [key for key, value in wanted.items() if value is None and key in there]
    if surplus and not any(wanted.values()) and len(surplus) == len(there):
        edit.remove(path)
        return
    for key in surplus:
        edit.remove((*path, key))
    for key, value in wanted.items():
        if value is not None and there.get(key) != value:
            edit.set((*path, key), value)
