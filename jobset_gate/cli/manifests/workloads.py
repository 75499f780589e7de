"""The kinds of workloads in manifests: which gang each asks for, and where in it the config of that gang belongs."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.config import ANNOTATION_PATH, ParsedConfig, canonical, parse_annotation
from jobset_gate.injection.inject import COPIED
from jobset_gate.objects.field_error import FieldError, child_path
from jobset_gate.objects.template import annotations_of, templates_of
from jobset_gate.objects.unstructured import Json, Path, as_list, as_map, format_path, nested
from jobset_gate.sources.objects import config_of
from jobset_gate.sources.table import JOB, JOBSET, LWS

CRON_JOB: Final = "CronJob"
TRAIN_JOB: Final = "TrainJob"
_VERSIONS: Final = {it.kind: it.api_version for it in (JOBSET, JOB, LWS)} | {CRON_JOB: JOB.api_version}
_TRAINER: Final = "trainer.kubeflow.org"
JOB_TEMPLATE: Final[Path] = ("spec", "jobTemplate")
"""Of a CronJob."""
_ANNOTATIONS: Final[Path] = ("metadata", "annotations")
_SCHEDULED: Final = "00000000"
"""For the time that the CronJob controller appends to a CronJob's name."""


def kind_of(value: Any) -> str:
    """The kind of a workload in a version that is known, of a TrainJob in any; "" for every other object."""
    version, kind = nested(value, "apiVersion"), nested(value, "kind")
    if kind == TRAIN_JOB:
        return TRAIN_JOB if str(version).partition("/")[0] == _TRAINER else ""
    return kind if isinstance(kind, str) and version is not None and _VERSIONS.get(kind) == version else ""


def workload_of(value: Any) -> Json | None:
    """What the webhook would judge: the JobSet, or a LeaderWorkerSet, Job or CronJob's Job that asks for a gate."""
    kind = kind_of(value)
    if kind == JOBSET.kind:
        return value  # type: ignore[no-any-return]
    if kind == CRON_JOB:
        template = as_map(nested(value, *map(str, JOB_TEMPLATE)))
        name = f"{nested(value, 'metadata', 'name') or 'cron'}-{_SCHEDULED}"
        meta = template.get("metadata")
        value = {**template, "apiVersion": JOB.api_version, "kind": JOB.kind}
        value["metadata"] = {**meta, "name": name} if isinstance(meta, dict) else meta
    return value if kind in (LWS.kind, JOB.kind, CRON_JOB) and config_of(value).present else None


# --- Where the config belongs -----------------------------------------------------------------------------------------


def why_not_read(value: Any) -> Callable[[Path], str] | None:
    """Why the config or annotation at a path of a workload has no effect, "" if it has; None for every other object."""
    match kind_of(value):
        case JOBSET.kind:
            return _not_on_jobset
        case "TrainJob":
            return _not_on_train_job
        case "":
            return None
        case kind:
            return partial(_not_in_annotations, value, kind)


def _not_on_jobset(path: Path) -> str:
    right: Path = (*_ANNOTATIONS, path[-1])
    if path[-1] == names.CONFIG_FIELD:
        right = ("spec", names.CONFIG_FIELD)
    return "" if path == right else f"it is read at {format_path(right)} alone"


def _not_on_train_job(path: Path) -> str:
    """Trainer copies annotations to the JobSet from patches of its runtime; `spec.annotations` is for 2.0 and 2.1."""
    holder = path[:-1]
    if path[-1] == names.CONFIG_FIELD:
        return _HINT
    if holder == _OF_2_0 or (holder[:2] == ("spec", "runtimePatches") and holder[3:] == _IN_PATCH):
        return ""
    return f"on a TrainJob it belongs into {_PLACE}"


def _not_in_annotations(value: Any, kind: str, path: Path) -> str:
    holder = (*JOB_TEMPLATE, *_ANNOTATIONS) if kind == CRON_JOB else _ANNOTATIONS
    where, key = format_path(holder), path[-1]
    if path == (*holder, key) or (kind == LWS.kind and _is_copy(value, path)):
        return ""
    if key == names.CONFIG_FIELD:
        whose = kind if kind == LWS.kind else JOB.kind
        return f"the config of a {whose} is the annotation {names.CONFIG} in {where}"
    return f"put it into {where}" if kind == CRON_JOB else f"it is read in {where} alone"


def _is_copy(value: Any, path: Path) -> bool:
    """Whether it is the copy that the webhook makes in the templates of a LeaderWorkerSet."""
    copied = {(*it.pod_path, *_ANNOTATIONS, name) for it in templates_of(value) for name in COPIED}
    return path in copied and bool(nested(value, *path) == annotations_of(value).get(str(path[-1])))


# --- TrainJobs of Kubeflow Trainer ------------------------------------------------------------------------------------

_PLACE: Final = "spec.runtimePatches[].trainingRuntimeSpec.template.metadata.annotations"
_HINT: Final = f"the config of a TrainJob is the annotation {names.CONFIG} in {_PLACE}"
_OF_2_0: Final[Path] = ("spec", "annotations")
_IN_PATCH: Final = ("trainingRuntimeSpec", "template", "metadata", "annotations")
PRINTED_AS_IT_IS: Final = {
    CRON_JOB: "a CronJob is printed as it is, since each of its Jobs gets its barrier when it is created",
    TRAIN_JOB: f"a TrainJob is printed as it is, since Trainer makes its JobSet in the cluster; {_HINT}",
}


def train_job_errors(value: Any) -> Iterator[FieldError]:
    """What is wrong with the configs that reach the JobSet."""
    for path, parsed in train_job_configs(value):
        for it in parsed.violations:
            yield FieldError(it.path.replace(ANNOTATION_PATH, path, 1), it.value, it.message, it.cause_type)


def train_job_summary(value: Any) -> str:
    """What the gate of a TrainJob without errors comes to."""
    texts = [canonical(parsed.config) for _, parsed in train_job_configs(value) if parsed.config is not None]
    return f"its JobSet gets the config {' and '.join(texts)}" if texts else f"no gate asked for; {_HINT}"


def train_job_configs(value: Any) -> Iterator[tuple[str, ParsedConfig]]:
    """Those that reach the JobSet, valid or not, with their places; none of anything but a TrainJob."""
    if kind_of(value) != TRAIN_JOB:
        return
    holders: list[tuple[Path, Any]] = [(_OF_2_0, nested(value, "spec", "annotations"))]
    for index, patch in enumerate(as_list(nested(value, "spec", "runtimePatches"))):
        holders.append((("spec", "runtimePatches", index, *_IN_PATCH), nested(patch, *_IN_PATCH)))
    for path, annotations in holders:
        text = nested(annotations, names.CONFIG)
        if text is not None:
            yield child_path(format_path(path), names.CONFIG), parse_annotation(text)
