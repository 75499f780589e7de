"""Pods that are gated alone, in manifests: as the webhook will see them, of start groups and of LeaderWorkerSets."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.cli.manifests.jobsets import STAND_IN, ManifestObject, WebhookOutcome, judge
from jobset_gate.cli.manifests.workloads import kind_of
from jobset_gate.injection.inject import COPIED
from jobset_gate.objects.field_error import FieldError
from jobset_gate.objects.template import PodView, annotations_of, group_size, templates_of
from jobset_gate.objects.unstructured import Json, Path, as_int, as_map, format_path, nested, walk
from jobset_gate.settings import Settings
from jobset_gate.sources import startgroup
from jobset_gate.sources.objects import config_of, is_gated_alone, is_in_start_group
from jobset_gate.sources.table import JOB, LWS

MOST_TEMPLATES: Final = 500
"""Pod templates of one object that are looked at."""
_JOB: Final = (JOB.api_version, JOB.kind)
_OWNERS: Final = {"Deployment": ("apps/v1", "ReplicaSet"), "CronJob": _JOB, "JobSet": _JOB}
"""Of the pods, where it is not the object itself."""
_STAND_IN_UID: Final = "x" * 36


@dataclass(frozen=True, slots=True)
class StartGroupPod:
    """A pod of a start group or of a LeaderWorkerSet, as the webhook will see it."""

    item: ManifestObject
    path: Path
    """Of its template in the object; () for a pod itself."""
    pod: Json

    def outcome(self, settings: Settings) -> WebhookOutcome:
        """The webhook's answer, with paths in the object. Of a LeaderWorkerSet that is refused there are no pods."""
        whole = self.item.workload if kind_of(self.item.value) == LWS.kind else None
        if whole is not None and judge(whole, settings).field_errors:
            return WebhookOutcome(self.pod)
        found = judge(self.pod, settings)
        errors = [self._placed(it) for it in found.field_errors] or list(_too_few(self.item.value, self.pod))
        warnings = (self._place(it) for it in found.warnings if not it.startswith("metadata.generateName"))
        return replace(found, field_errors=tuple(errors), warnings=tuple(warnings))

    def _placed(self, it: FieldError) -> FieldError:
        if self.path and it.path.startswith("metadata.ownerReferences"):
            return replace(it, path="kind", value=nested(self.item.value, "kind"))
        return replace(it, path=self._place(it.path))

    def _place(self, path: str) -> str:
        return f"{format_path(self.path)}.{path}" if self.path else path


def pods_of(item: ManifestObject) -> list[StartGroupPod]:
    """One for each template with the label, or of a gated LeaderWorkerSet; none of a JobSet or Job that is a gang."""
    value = item.value
    if kind_of(value) == LWS.kind:
        made = (StartGroupPod(item, *it) for it in _pods_of_lws(value, gated=item.workload is not None))
        return [it for it in made if is_gated_alone(it.pod)]
    if not isinstance(value, dict) or (item.workload is not None and config_of(item.workload).present):
        return []
    if nested(value, "kind") == "Pod":
        return [StartGroupPod(item, (), value)] if is_in_start_group(value) else []
    templates = islice(_templates(value), MOST_TEMPLATES)
    found = (StartGroupPod(item, path, _pod(value, template)) for path, template in templates)
    return [it for it in found if is_in_start_group(it.pod)]


def summary(pod: Json) -> str:
    """What a pod without violations waits for."""
    config, many = config_of(pod).config, PodView(pod).expected_pods
    limit = "for ever" if config is None or config.timeout is None else f"at most {config.timeout}s"
    group = nested(pod, "metadata", "labels", names.START_GROUP)
    return f"{many} pod{'' if many == 1 else 's'} of start group {group} wait for each other, {limit}"


def is_template_of_start_group(value: Any, path: Path) -> bool:
    """Whether the annotation at `path` is on a pod template of a start group, which is where it is read."""
    if path[-2:-1] != ("annotations",) or not (path[-4:-2] == ("template", "metadata") or len(path) == 3):
        return False
    for key in path[:-2]:
        value = value[key]
    return names.START_GROUP in as_map(value.get("labels"))


def _templates(value: Json) -> Iterator[tuple[Path, Json]]:
    """Whatever looks like a pod template: a member `template` with a pod's spec."""
    for path, member in walk(value):
        if path[-1:] == ("template",) and isinstance(nested(member, "spec", "containers"), list):
            yield path, member


def _pod(value: Json, template: Json) -> Json:
    """As its controller creates it."""
    kind, name = str(nested(value, "kind")), _name(value)
    version, owner = _OWNERS.get(kind, (nested(value, "apiVersion"), kind))
    return _made(value, template, (version, owner, name), generateName=f"{name}-")


def _pods_of_lws(value: Json, *, gated: bool) -> Iterator[tuple[Path, Json]]:
    """A pod of each template, as LWS makes it, with the place of the template: leader, and worker if it has its own."""
    size, notes, name = group_size(value), annotations_of(value), _name(value)
    for index, template in enumerate(templates_of(value)[:size]):
        meta = as_map(nested(template.pod_template, "metadata"))
        labels = {key: it for key, it in as_map(meta.get("labels")).items() if key != names.GATED}
        annotations = {key: it for key, it in as_map(meta.get("annotations")).items() if key not in COPIED}
        if gated:
            labels[names.GATED] = LWS.gated
            annotations |= {key: notes[key] for key in COPIED if notes.get(key) is not None}
        labels |= {names.LWS_NAME: name, names.LWS_GROUP_INDEX: "0", names.LWS_WORKER_INDEX: str(index)}
        annotations[names.LWS_SIZE] = str(size)
        leader = f"{name}-0"
        owner, own = (leader, f"{leader}-{index}") if index else (name, leader)
        made_by, meta = ("apps/v1", "StatefulSet", owner), {"labels": labels, "annotations": annotations}
        yield template.pod_path, _made(value, template.pod_template, made_by, name=own, **meta)


def _made(value: Json, template: Any, owner: tuple[Any, str, str], **meta: Any) -> Json:
    """`owner`: API version, kind and name."""
    reference = dict(zip(("apiVersion", "kind", "name"), owner, strict=True)) | {"uid": _STAND_IN_UID}
    mine: Json = {**as_map(nested(template, "metadata")), **meta, "ownerReferences": [reference | {"controller": True}]}
    if namespace := nested(value, "metadata", "namespace"):
        mine["namespace"] = namespace
    return {"apiVersion": "v1", "kind": "Pod", "metadata": mine, "spec": nested(template, "spec")}


def _name(value: Json) -> str:
    """As an API server completes it."""
    given = nested(value, "metadata", "name")
    return str(given or f"{nested(value, 'metadata', 'generateName') or ''}{STAND_IN}")


def _too_few(value: Json, pod: Json) -> Iterator[FieldError]:
    """A StatefulSet that never has enough pods at once (K8)."""
    if (nested(value, "apiVersion"), nested(value, "kind")) != ("apps/v1", "StatefulSet"):
        return
    policy, replicas = nested(value, "spec", "podManagementPolicy"), nested(value, "spec", "replicas")
    spec = wire.StatefulSetSpec(replicas=as_int(replicas, 1), pod_management_policy=str(policy or ""))
    owner = wire.StatefulSet(metadata=wire.ObjectMeta(name=str(nested(value, "metadata", "name"))), spec=spec)
    if why := startgroup.cannot_gather(owner, PodView(pod).expected_pods):
        by_one = policy != "Parallel"
        yield FieldError("spec.podManagementPolicy" if by_one else "spec.replicas", policy if by_one else replicas, why)
