"""TrainJobs of Kubeflow Trainer in manifests: where the config of their JobSet belongs, and what it says."""

from collections.abc import Iterator
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.config import ANNOTATION_PATH, ParsedConfig, canonical, parse_annotation
from jobset_gate.objects.field_error import FieldError, child_path
from jobset_gate.objects.unstructured import Path, as_list, format_path, nested

GROUP: Final = "trainer.kubeflow.org"
PLACE: Final = "spec.runtimePatches[].trainingRuntimeSpec.template.metadata.annotations"
HINT: Final = f"the config of a TrainJob is the annotation {names.CONFIG} in {PLACE}"
RENDERED: Final = f"a TrainJob is printed as it is, since Trainer makes its JobSet in the cluster; {HINT}"
_OF_2_0: Final[Path] = ("spec", "annotations")
_IN_PATCH: Final = ("trainingRuntimeSpec", "template", "metadata", "annotations")


def is_train_job(value: Any) -> bool:
    """Of any version."""
    return nested(value, "kind") == "TrainJob" and str(nested(value, "apiVersion")).partition("/")[0] == GROUP


def reaches_jobset(path: Path) -> bool:
    """Whether Trainer copies the annotation at `path` to the JobSet; `spec.annotations` is for Trainer 2.0 and 2.1."""
    holder = path[:-1]
    return holder == _OF_2_0 or (holder[:2] == ("spec", "runtimePatches") and holder[3:] == _IN_PATCH)


def field_errors(value: Any) -> Iterator[FieldError]:
    """What is wrong with the configs that reach the JobSet."""
    for path, parsed in _configs(value):
        for it in parsed.violations:
            yield FieldError(it.path.replace(ANNOTATION_PATH, path, 1), it.value, it.message, it.cause_type)


def summary(value: Any) -> str:
    """What the gate of a TrainJob without errors comes to."""
    texts = [canonical(parsed.config) for _, parsed in _configs(value) if parsed.config is not None]
    return f"its JobSet gets the config {' and '.join(texts)}" if texts else f"no gate asked for; {HINT}"


def has_config(value: Any) -> bool:
    """Whether a config reaches the JobSet, valid or not."""
    return is_train_job(value) and any(True for _ in _configs(value))


def _configs(value: Any) -> Iterator[tuple[str, ParsedConfig]]:
    spec = nested(value, "spec")
    holders: list[tuple[Path, Any]] = [(_OF_2_0, nested(spec, "annotations"))]
    for index, patch in enumerate(as_list(nested(spec, "runtimePatches"))):
        holders.append((("spec", "runtimePatches", index, *_IN_PATCH), nested(patch, *_IN_PATCH)))
    for path, annotations in holders:
        text = nested(annotations, names.CONFIG)
        if text is not None:
            yield child_path(format_path(path), names.CONFIG), parse_annotation(text)
