"""`from jobset_gate import gate`: puts a gate on a JobSet or a Job before it is created (docs/howto/from-python.md)."""

import copy
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from jobset_gate import names
from jobset_gate.barrier import config
from jobset_gate.objects.field_error import FieldError

_Workload = TypeVar("_Workload")


def gate_annotations(
    *,
    timeout: int | None = None,
    targets: Sequence[str] = (),
    on_timeout: Literal["Fail", "Release"] = "Fail",
    prefetch_images: bool = False,
    barrier_image: str | None = None,
) -> dict[str, str]:
    """The annotations of a gate, for objects that hand them on to a JobSet, as Kubeflow's TrainJob does.

    `timeout`: seconds from the first started pod to the timeout, 1 to 2147483647; None waits without a limit.
    `targets`: names of the replicatedJobs of the gang; none means all. The others as the annotations of the same name.
    Raises ValueError with the path and the value of each field that is wrong.
    """
    given: dict[str, Any] = {}
    if timeout is not None:
        given[names.TIMEOUT_FIELD] = timeout
    if targets:
        given[names.TARGETS_FIELD] = list(targets) if not isinstance(targets, str) else targets
    parsed = config.parse(given, names.CONFIG_FIELD)
    errors = list(parsed.violations)
    if on_timeout not in (names.ON_TIMEOUT_FAIL, names.ON_TIMEOUT_RELEASE):
        errors.append(FieldError("on_timeout", on_timeout, "must be Fail or Release"))
    if errors or parsed.config is None:
        raise ValueError("\n".join(map(str, errors)))
    made = {names.CONFIG: config.canonical(parsed.config)}
    if on_timeout != names.ON_TIMEOUT_FAIL:
        made[names.ON_TIMEOUT] = on_timeout
    if prefetch_images:
        made[names.PREFETCH_IMAGES] = "true"
    if barrier_image:
        made[names.BARRIER_IMAGE] = barrier_image
    return made


def gate(
    workload: _Workload,
    *,
    timeout: int | None = None,
    targets: Sequence[str] = (),
    on_timeout: Literal["Fail", "Release"] = "Fail",
    prefetch_images: bool = False,
    barrier_image: str | None = None,
) -> _Workload:
    """A copy of a JobSet or a Job with a gate: no main container of its (targeted) pods starts before all have started.

    `workload` is a dict as in a manifest, or a model with `metadata` and `spec`, as JobSet's SDK and kubernetes-asyncio
    (V1Job) have them; a CronJob's jobTemplate is one too. The gate is written as annotations, which every model
    carries. The other arguments and errors are those of `gate_annotations`; each target must be a replicatedJob of the
    JobSet, a Job has none, and what has another gate already is refused.
    """
    annotations = gate_annotations(
        timeout=timeout,
        targets=targets,
        on_timeout=on_timeout,
        prefetch_images=prefetch_images,
        barrier_image=barrier_image,
    )
    spec = _get(workload, "spec")
    kind = "JobSet" if _get(spec, "template") is None else "Job"
    if targets and kind == "Job":
        raise ValueError(str(FieldError("targets", list(targets), "a Job has no replicatedJobs: leave them out")))
    known = [_get(job, "name", "name") for job in _get(spec, "replicatedJobs", "replicated_jobs") or ()]
    for number, target in enumerate(targets):
        if target not in known:
            there = ", ".join(map(str, known)) or "none"
            message = f"no replicatedJob has this name; there are: {there}"
            raise ValueError(str(FieldError(f"targets[{number}]", target, message)))
    made = copy.deepcopy(workload)
    if isinstance(made, dict):
        metadata: Any = made.setdefault("metadata", {})
    else:
        metadata = _get(made, "metadata")
        if metadata is None:
            raise ValueError(f"metadata: a {kind} without metadata has no place for a gate")
    if _get(spec, names.CONFIG_FIELD) is not None:
        raise ValueError(f"spec.{names.CONFIG_FIELD}: this JobSet has a gate already")
    before = _get(metadata, "annotations") or {}
    other = sorted(key for key, value in annotations.items() if before.get(key, value) != value)
    if other:
        raise ValueError(f"metadata.annotations[{other[0]}]: this {kind} has another gate already")
    _set(metadata, "annotations", {**before, **annotations})
    return made


def _get(holder: Any, *keys: str) -> Any:
    """The first of these that a dict or a model has; None without any."""
    for key in keys:
        found = holder.get(key) if isinstance(holder, dict) else getattr(holder, key, None)
        if found is not None:
            return found
    return None


def _set(holder: Any, key: str, value: Any) -> None:
    if isinstance(holder, dict):
        holder[key] = value
    else:
        setattr(holder, key, value)
