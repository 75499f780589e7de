"""Decodes Kubernetes objects (`wire.py`) into the values of `model.py`.

Missing and malformed values are read as absent: objects may have been created while the webhook was off.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec

from jobset_gate import names
from jobset_gate.barrier import config, pending_reason, verdict_codec, wire
from jobset_gate.barrier.model import (
    BarrierStage,
    ConditionSeen,
    Config,
    ConfigMapSeen,
    JobSeen,
    JobSetSeen,
    PodSeen,
    ReplicatedJobSeen,
)
from jobset_gate.errors import Malformed
from jobset_gate.objects import devices, terminal_text
from jobset_gate.objects.caches import intern_text

NO_INDEX = -1
"""Of a label without an index; matches no slot."""

MAX_INDEXES = 1_000_000
"""Larger ranges are not expanded; Kubernetes allows fewer completions in an Indexed Job."""

MAX_TEXT = 1000
"""Characters that are kept of a user's text; many objects may carry one."""

MAX_RESOURCES_BYTES = 256 * 1024
"""JSON size of the resources of all containers of a JobSet; of a larger one no device is counted."""

MAX_DEVICE_AMOUNTS = 2000
"""Device quantities of a JobSet; of one with more no device is counted."""

_PHASES = {phase: phase for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown")}
NO_LABELS = wire.Labels()
NO_ANNOTATIONS = wire.Annotations()
_NO_CONFIG = Config()
_JOBSET_ENDS = _JOBSET_COMPLETED, _JOBSET_FAILED = "Completed", "Failed"
_WAITING, _RUNNING, _PASSED, _FAILED = (
    BarrierStage  # looking up a member of an enum takes as long as an `if`, several times
)


def pod(seen: wire.Pod) -> PodSeen:
    """A gated pod (A4, A9). Called for each pod event, so it is written for speed."""
    meta = seen.metadata
    labels, notes, status = meta.labels or NO_LABELS, meta.annotations or NO_ANNOTATIONS, seen.status
    stage, since = _stage(barrier_status(status))
    created = seconds(meta.creation_timestamp)
    deleting = meta.deletion_timestamp is not None
    bound = seen.spec.node_name != ""
    gang, jobset_uid, replicated_job, job_index, attempt = _slot_labels(labels)
    # Any user who may create pods can write labels; a pod of the gang has an owning Job, which `count` checks.
    job_uid = _controller_uid(meta.owner_references)
    started = (stage is _RUNNING or stage is _PASSED) and not deleting and status.phase != "Failed"
    return PodSeen(  # positional: twenty keywords cost a quarter of the call
        intern_text(meta.namespace),
        meta.name,
        meta.uid,
        gang,
        jobset_uid if job_uid else "",
        job_uid,
        replicated_job,
        job_index,
        verdict_codec.parse_number(notes.index, NO_INDEX) if notes.index else None,
        attempt,
        verdict_codec.parse_epoch(notes.epoch),
        _PHASES.get(status.phase, ""),
        deleting,
        bound,
        stage,
        None if started else created,
        _not_before_creation(created, since),
        _not_before_creation(created, _main_since(status)) if stage is _PASSED else None,
        intern_text(notes.verdict) if 0 < len(notes.verdict) <= verdict_codec.MAX_VERDICT_LENGTH else "",
        None if started else pending_reason.classify_pending(status, bound=bound, deleting=deleting),
    )


def job(seen: wire.Job) -> JobSeen:
    """A gated Job (A4: a finished slot needs no pod)."""
    meta, status = seen.metadata, seen.status
    labels = meta.labels or NO_LABELS
    ends = any(_is_condition_true(status.conditions, kind) for kind in ("Failed", "FailureTarget"))
    made_by_jobset = _controller_uid(meta.owner_references) == labels.jobset_uid
    return JobSeen(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        gang=intern_text(labels.jobset),
        jobset_uid=intern_text(labels.jobset_uid) if made_by_jobset else "",
        replicated_job=intern_text(labels.replicated_job),
        job_index=verdict_codec.parse_number(labels.job_index, NO_INDEX),
        attempt=verdict_codec.parse_number(labels.attempt, NO_INDEX),
        suspended=bool(seen.spec.suspend),
        deleting=meta.deletion_timestamp is not None,
        complete=_is_condition_true(status.conditions, "Complete"),
        succeeded=status.succeeded or 0,
        completed=parse_indexes(status.completed_indexes or ""),
        failed=frozenset() if ends else parse_indexes(status.failed_indexes or ""),
    )


def jobset(seen: wire.JobSet) -> JobSetSeen | None:
    """A JobSet with a config in field or annotation; None for all others (A2)."""
    meta, spec, status = seen.metadata, seen.spec, seen.status
    notes = meta.annotations or NO_ANNOTATIONS
    raw = bytes(spec.group_scheduling_config)
    field = None if raw in (b"", b"null") else raw
    if field is None and notes.config is None:
        return None
    wanted, problem = _config(field, notes.config)
    jobs = spec.replicated_jobs or ()
    counted = _within_device_limits(jobs)
    failed = status.terminal_state == _JOBSET_FAILED or _is_condition_true(status.conditions, _JOBSET_FAILED)
    finished = failed or bool(status.terminal_state) or _is_condition_true(status.conditions, _JOBSET_COMPLETED)
    return JobSetSeen(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        created=seconds(meta.creation_timestamp) or 0.0,
        attempt=status.restarts or 0,
        suspended=bool(spec.suspend),
        deleting=meta.deletion_timestamp is not None,
        finished=finished,
        failed=failed,
        finished_message=_finished_message(status.conditions) if finished else "",
        managed_elsewhere=spec.managed_by not in (None, "", names.JOBSET_CONTROLLER),
        config=wanted,
        config_problem=problem,
        bypass=notes.bypass == "true",
        releases_on_timeout=notes.on_timeout == names.ON_TIMEOUT_RELEASE,
        replicated_jobs=tuple(_replicated_job(job, counted=counted) for job in jobs),
        condition=_our_condition(status.conditions),
        token=_stream_token(jobs),
    )


def config_map(seen: wire.ConfigMap) -> ConfigMapSeen | None:
    """A verdict ConfigMap; None without our label or a gang's name (A10)."""
    meta = seen.metadata
    if meta.labels is None or meta.labels.gate != names.GATE_VALUE or not meta.name.endswith(names.CONFIG_MAP_SUFFIX):
        return None
    data = seen.data or {}
    verdict = verdict_codec.parse(data.get(names.KEY_VERDICT, ""))
    clock = verdict_codec.parse_clock(data.get(names.KEY_WAITING_SINCE, ""))
    jobset_uid = meta.annotations.jobset_uid[:MAX_TEXT] if meta.annotations else ""
    owned = any(owner.uid == jobset_uid for owner in meta.owner_references or ())
    return ConfigMapSeen(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        jobset_uid=jobset_uid,
        verdict=verdict,
        waiting_since=clock,
        canonical=owned and data == verdict_codec.config_map_data(verdict, clock),
        deleting=meta.deletion_timestamp is not None,
    )


def parse_indexes(text: str) -> frozenset[int]:
    """A Job's completedIndexes or failedIndexes ("1,3-5,7") as numbers; malformed parts are left out."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        low, _, high = part.partition("-")
        first = verdict_codec.parse_number(low, NO_INDEX)
        last = verdict_codec.parse_number(high, NO_INDEX) if high else first
        if 0 <= first <= last and last - first < MAX_INDEXES:
            found.update(range(first, last + 1))
    return frozenset(found)


@lru_cache(maxsize=4096)
def _slot_labels(labels: wire.Labels) -> tuple[str, str, str, int, int]:
    """Gang, JobSet UID, replicatedJob, job index, attempt: one copy for all pods of a Job."""
    return (
        intern_text(labels.jobset),
        intern_text(labels.jobset_uid),
        intern_text(labels.replicated_job),
        verdict_codec.parse_number(labels.job_index, NO_INDEX),
        verdict_codec.parse_number(labels.attempt, NO_INDEX),
    )


def _controller_uid(owners: list[wire.OwnerReference] | None) -> str:
    """UID of the controller owner, "" without one."""
    for owner in owners or ():
        if owner.controller:
            return intern_text(owner.uid)
    return ""


def barrier_status(status: wire.PodStatus) -> wire.ContainerStatus | None:
    """The barrier's container status; it is the last init container."""
    for container in reversed(status.init_container_statuses or ()):
        if container.name == names.BARRIER_CONTAINER:
            return container
    return None


def _stage(barrier: wire.ContainerStatus | None) -> tuple[BarrierStage, float | None]:
    state = barrier.state if barrier is not None else None
    if state is None:
        return _WAITING, None
    if state.running is not None:
        return _RUNNING, seconds(state.running.started_at)
    if state.terminated is not None:
        passed = state.terminated.exit_code == 0
        return _PASSED if passed else _FAILED, seconds(state.terminated.started_at)
    return _WAITING, None


def _main_since(status: wire.PodStatus) -> float | None:
    """Start of the first main container; of a restarted one, of its last run."""
    earliest: float | None = None
    for container in status.container_statuses or ():
        state = container.state
        ran = None if state is None else state.running or state.terminated
        at = None if ran is None else seconds(ran.started_at)
        if at is not None and (earliest is None or at < earliest):
            earliest = at
    return earliest


def _not_before_creation(created: float | None, since: float | None) -> float | None:
    """No container starts before its pod is created, unless the node's clock is behind."""
    return created if since is not None and created is not None and since < created else since


def seconds(moment: datetime | None) -> float | None:
    """Seconds since the epoch."""
    return None if moment is None else moment.timestamp()


def _is_condition_true(conditions: list[wire.Condition] | None, kind: str) -> bool:
    return any(condition.type == kind and condition.status == "True" for condition in conditions or ())


def _finished_message(conditions: list[wire.Condition] | None) -> str:
    """Any client that may write the JobSet's status can set this text."""
    said = (it.message for it in conditions or () if it.type in _JOBSET_ENDS and it.status == "True")
    return terminal_text.line(next(said, "")[:MAX_TEXT])[: pending_reason.MAX_MESSAGE]


def _our_condition(conditions: list[wire.Condition] | None) -> ConditionSeen | None:
    for condition in conditions or ():
        if condition.type == names.CONDITION:
            return ConditionSeen(
                status=condition.status,
                reason=condition.reason,
                message=condition.message,
                since=condition.last_transition_time or "",
            )
    return None


def _config(field: bytes | None, annotation: str | None) -> tuple[Config, str]:
    try:
        return config.stored_config(field, annotation), ""
    except Malformed as problem:
        return _NO_CONFIG, str(problem)[:MAX_TEXT]


def _replicated_job(seen: wire.ReplicatedJob, *, counted: bool) -> ReplicatedJobSeen:
    spec = seen.template.spec
    notes = spec.template.metadata.annotations or NO_ANNOTATIONS
    return ReplicatedJobSeen(
        name=seen.name,
        replicas=1 if seen.replicas is None else seen.replicas,
        parallelism=1 if spec.parallelism is None else spec.parallelism,
        completions=spec.completions,
        indexed=spec.completion_mode != "NonIndexed",
        has_barrier=_barrier_template(seen) is not None,
        epoch=verdict_codec.parse_epoch(notes.epoch),
        devices=_devices(spec.template.spec) if counted else (),
    )


def _within_device_limits(jobs: Iterable[wire.ReplicatedJob]) -> bool:
    """True if the containers' device quantities are within the limits."""
    pods = [job.template.spec.template.spec for job in jobs]
    containers = [it for pod in pods for it in (*(pod.containers or ()), *(pod.init_containers or ()))]
    said = [raw for it in containers for raw in (it.resources.requests, it.resources.limits)]
    if sum(len(memoryview(raw)) for raw in said) > MAX_RESOURCES_BYTES:
        return False
    named = (name for raw in said for name in _amounts(raw) if devices.is_device(name))
    return next(islice(named, MAX_DEVICE_AMOUNTS, None), None) is None


def _amounts(raw: msgspec.Raw) -> dict[str, Any]:
    return msgspec.json.decode(raw, type=dict[str, Any] | None) or {}


def _devices(seen: wire.TemplatePodSpec) -> devices.Devices:
    mains = [_container_devices(container) for container in seen.containers or ()]
    inits = [(_container_devices(it), it.restart_policy == "Always") for it in seen.init_containers or ()]
    return devices.pod_devices(mains, inits)


def _container_devices(seen: wire.MainContainer) -> dict[str, int]:
    return devices.container_devices(_amounts(seen.resources.requests), _amounts(seen.resources.limits))


def _barrier_template(seen: wire.ReplicatedJob) -> wire.InitContainer | None:
    """The barrier container in a replicatedJob's pod template."""
    containers = seen.template.spec.template.spec.init_containers or ()
    return next((container for container in containers if container.name == names.BARRIER_CONTAINER), None)


def _stream_token(jobs: Iterable[wire.ReplicatedJob]) -> str:
    """The gang's token at the gate stream: the last part of the URL in each barrier's environment."""
    for job in jobs:
        barrier = _barrier_template(job)
        for variable in (barrier and barrier.env) or ():
            if variable.name == names.ENV_STREAM and variable.value:
                return variable.value.rpartition("/")[2][:MAX_TEXT]
    return ""
