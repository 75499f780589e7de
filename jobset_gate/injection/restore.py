"""UPDATE: restores injected members, and JobSet's defaults of CREATE, and counts epochs (A3, A5, K4).

Nothing is rendered again: JobSet's validator and the API server's rules for Jobs demand unchanged templates.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.config import ConfigSources, canonical
from jobset_gate.injection import container, ownership
from jobset_gate.injection.ownership import DECISION_ANNOTATIONS, gated_jobs, gated_labels, set_annotation
from jobset_gate.objects import quantity
from jobset_gate.objects.field_error import CauseType, FieldError
from jobset_gate.objects.json_patch import PatchBuilder, PatchTooLarge
from jobset_gate.objects.quantity import semantically_equal
from jobset_gate.objects.template import TemplateView, annotations_of, is_suspended, templates_by_name, templates_of
from jobset_gate.objects.unstructured import Json, Path, as_int, as_list, as_map, nested
from jobset_gate.sources.job import ENDS
from jobset_gate.sources.objects import config_of, source_of
from jobset_gate.sources.table import JOBSET

FIXED_ANNOTATIONS = (names.CONFIG, names.PREFETCH_IMAGES, names.BARRIER_IMAGE)
"""Annotations that are fixed on CREATE: absent ones are restored."""
_DEFAULTS = (
    ("spec", "successPolicy"),
    ("spec", "startupPolicy"),
    ("spec", "network"),
    ("spec", "network", "enableDNSHostnames"),
    ("spec", "network", "publishNotReadyAddresses"),
)
_IMMUTABLE = ("network", "successPolicy", "failurePolicy", "startupPolicy", "volumeClaimPolicies")
"""Compared literally by JobSet's schema, while its webhook stores them with empty members added."""


def restore(edit: PatchBuilder, new: Json, old: Json) -> None:
    """All of it: injected members, and what JobSet's own webhook sets and compares: defaults and spelling."""
    if restore_barriers(edit, new, old) and source_of(old) is JOBSET:
        _restore_defaults(edit, new, old)
        _restore_spelling(edit, new, old)


def restore_barriers(edit: PatchBuilder, new: Json, old: Json) -> bool:
    """Config, annotations, barriers, volumes, labels and epochs as the old object has them; False if it has no gate."""
    given = config_of(old)
    if not given.present or not _usable(new):
        return False
    _config(edit, new, old, given)
    now = templates_by_name(new)
    epoch = _epoch_after(new, old)
    for name, was in gated_jobs(old).items():
        job = now.get(name)
        if job is None or not job.well_formed:
            continue
        _labels(edit, job, was)
        for key in ownership.MANAGED_LISTS:
            _entries(edit, job, key, ownership.own_entries(was, key))
        kept = was.pod_annotations.get
        set_annotation(edit, job, names.EPOCH, str(epoch.number) if epoch.writable else kept(names.EPOCH))
        for key in DECISION_ANNOTATIONS:
            set_annotation(edit, job, key, None if epoch.writable else kept(key))
    return True


def _restore_defaults(edit: PatchBuilder, new: Json, old: Json) -> None:
    """Defaults that JobSet's own webhook sets on CREATE only, where the new object lacks them."""
    for path in _DEFAULTS:
        value, parent = nested(old, *path), nested(edit.document, *path[:-1])
        if value is not None and isinstance(parent, dict) and parent.get(path[-1]) is None:
            edit.set(path, value)
    _default_each(edit, new, old, ("spec", "failurePolicy", "rules"), "name")
    _default_each(edit, new, old, ("spec", "volumeClaimPolicies"), "retentionPolicy")
    for key in _IMMUTABLE:
        now, before = nested(edit.document, "spec", key), nested(old, "spec", key)
        if now is not None and now != before and semantically_equal(now, before):
            edit.replace(("spec", key), before)
    was = templates_by_name(old)
    for job in templates_of(new):
        if job.name in was and job.well_formed:
            _value(edit, job.job_spec, was[job.name].job_spec, (*job.job_path, "spec"), "completionMode")
            _value(edit, job.pod_spec, was[job.name].pod_spec, (*job.pod_path, "spec"), "restartPolicy")


def _restore_spelling(edit: PatchBuilder, new: Json, old: Json) -> None:
    """The stored spelling of semantically equal templates, as far as the limit of a patch allows: `{}` where the old
    template has it and the one to be stored has nothing, and equal amounts as they were.

    To JobSet's validator both are the same, so this is only about the stored words: without it the first
    `kubectl apply` or `kubectl replace` of an unchanged manifest would raise metadata.generation (A3).
    """
    was = templates_by_name(old)
    with suppress(PatchTooLarge):
        for job in templates_of(new):
            if job.name in was and job.well_formed:
                _walk(edit, list(job.job_path), nested(edit.document, *job.job_path), was[job.name].job)


def _usable(new: Json) -> bool:
    members = (new.get("spec"), new.get("metadata"), nested(new, "metadata", "annotations"))
    return all(isinstance(it, dict | None) for it in members)


def _config(edit: PatchBuilder, new: Json, old: Json, was: ConfigSources) -> None:
    if nested(new, "spec", names.CONFIG_FIELD) is None and was.field is not None:
        edit.set(("spec", names.CONFIG_FIELD), was.field)
    for key in FIXED_ANNOTATIONS:
        value = annotations_of(old).get(key)
        if value is not None and annotations_of(new).get(key) is None:
            edit.set(("metadata", "annotations", key), value)
    if was.annotation is None and annotations_of(new).get(names.CONFIG) is None and was.config is not None:
        # Created while the webhook was off: store the config where no schema can prune it, too (A2).
        edit.set(("metadata", "annotations", names.CONFIG), canonical(was.config))


def _labels(edit: PatchBuilder, job: TemplateView, was: TemplateView) -> None:
    for (path, now), value in zip(gated_labels(job).items(), gated_labels(was).values(), strict=True):
        if value is not None and now != value:
            edit.set(path, value)


def _entries(edit: PatchBuilder, job: TemplateView, key: str, kept: ownership.IndexedEntries) -> None:
    """Containers or volumes at their place with their content. A changed one is left: validation refuses it."""
    path: Path = (*job.pod_path, "spec", key)
    was = {entry["name"]: entry for _, entry in kept}
    if kept and nested(job.pod_spec, key) is None:
        edit.set(path, list(was.values()))
        return
    entries = job.spec_list(key)
    present = {at: was[name] for at, entry in enumerate(entries) if (name := _name(entry)) in was}
    if not all(container.equal_except_token(entries[at], entry) for at, entry in present.items()):
        return
    wanted = [entry for at, entry in enumerate(entries) if at not in present]
    for index, entry in kept:
        wanted.insert(index, entry)
    lacking = was.keys() - {entry["name"] for entry in present.values()}
    if [present.get(at, entry) for at, entry in enumerate(entries)] == [
        it for it in wanted if _name(it) not in lacking
    ]:
        for at, entry in present.items():
            if entries[at] != entry:
                edit.replace((*path, at), entry)
    else:  # in another order, or one of them twice
        lacking = set(was)
        for at in reversed(present):
            edit.remove((*path, at))
    for place, entry in enumerate(wanted):
        if _name(entry) in lacking:
            edit.insert((*path, place), entry)


def _name(entry: Any) -> str | None:
    """Of a container or volume; a name that is no string, and maybe cannot be looked up, is none."""
    name = nested(entry, "name")
    return name if isinstance(name, str) else None


def _default_each(edit: PatchBuilder, new: Json, old: Json, path: tuple[str, ...], key: str) -> None:
    pairs = zip(as_list(nested(new, *path)), as_list(nested(old, *path)), strict=False)
    for index, (now, was) in enumerate(pairs):
        if isinstance(now, dict):
            _value(edit, now, as_map(was), (*path, index), key)


def _value(edit: PatchBuilder, now: Json | None, was: Json | None, path: Path, key: str) -> None:
    value = (was or {}).get(key)
    if value is not None and (now or {}).get(key) in (None, ""):
        edit.set((*path, key), value)


_EMPTY_KEYS: Final = ("metadata", "resources")
"""Members of the templates that Go writes out even when nobody has set them."""


def _walk(edit: PatchBuilder, path: list[str | int], now: Any, was: Any) -> None:
    """`path` grows and shrinks on the way: a copy at each step would cost depth times width."""
    if isinstance(now, dict) and isinstance(was, dict):
        for key, value in was.items():
            there = now.get(key)
            if key in _EMPTY_KEYS and value == {} and there is None:
                edit.set((*path, key), {})
            elif path[-1] in quantity.MAPS:
                if there != value and quantity.same(there, value):
                    edit.set((*path, key), value)
            else:
                _step(edit, path, key, there, value)
    elif isinstance(now, list) and isinstance(was, list):
        for index, (entry, before) in enumerate(zip(now, was, strict=False)):
            if _name(entry) == _name(before):
                _step(edit, path, index, entry, before)


def _step(edit: PatchBuilder, path: list[str | int], key: str | int, now: Any, was: Any) -> None:
    path.append(key)
    _walk(edit, path, now, was)
    path.pop()


# --- Epochs -----------------------------------------------------------------------------------------------------------


class _Epoch(NamedTuple):
    """The epoch after an update."""

    number: int
    writable: bool
    """Whether the API server allows other template annotations than the old object's."""


def _epoch_after(new: Json, old: Json) -> _Epoch:
    """The highest epoch over the old targets, and one more when this write begins a new one. It never falls."""
    found = (job.pod_annotations.get(names.EPOCH) for job in gated_jobs(old).values())
    highest = max((verdict_codec.parse_epoch(it if isinstance(it, str) else None) for it in found), default=0)
    if source_of(old).counts_resumptions:
        begins = _resumes(new, old)
        return _Epoch(highest + begins, begins)
    return _Epoch(highest + (is_suspended(new) and not is_suspended(old)), is_suspended(old) or is_suspended(new))


def too_early(new: Json, old: Json) -> FieldError | None:
    """A resumption of a gated Job that is still being suspended: its template cannot change yet (K4)."""
    if not (source_of(old).counts_resumptions and gated_jobs(old) and _resumes(new, old)):
        return None
    left = ", ".join(_left(old))
    if not left:
        return None
    message = f"the {source_of(old).kind} is still being suspended ({left}): resume it again in a moment"
    return FieldError("spec.suspend", False, message, CauseType.FORBIDDEN)


def _resumes(new: Json, old: Json) -> bool:
    """Whether this write makes the Job controller of this cluster create pods again."""
    finished = any(
        nested(it, "type") in ENDS and nested(it, "status") == "True"
        for it in as_list(nested(old, "status", "conditions"))
    )
    elsewhere = source_of(old).is_managed_elsewhere(nested(old, "spec", "managedBy"))
    return is_suspended(old) and not is_suspended(new) and not elsewhere and not finished


def _left(old: Json) -> Iterator[str]:
    active = as_int(nested(old, "status", "active"), 0)
    if active > 0:
        yield f"{active} pod{'' if active == 1 else 's'} active"
    if nested(old, "status", "startTime") is not None:
        yield "startTime set"
