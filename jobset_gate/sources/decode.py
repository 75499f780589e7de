"""Decodes pods, Jobs and ConfigMaps of gangs (`barrier.wire`) into the values of `barrier.model`.

Missing and malformed values are read as absent: objects may have been created while the webhook was off.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, TypeVar

from jobset_gate import names
from jobset_gate.barrier import pending_reason, verdict_codec, wire
from jobset_gate.barrier.model import BarrierStage, ConditionSeen, ConfigMapSeen, JobSeen, PodSeen
from jobset_gate.objects.caches import intern_text
from jobset_gate.sources import job as job_source
from jobset_gate.sources import jobset as jobset_source
from jobset_gate.sources.jobset import NO_INDEX
from jobset_gate.sources.slot import Slot
from jobset_gate.sources.table import JOB, JOBSET, SOURCES
from jobset_gate.sources.templates import MAX_TEXT, NO_ANNOTATIONS, is_condition_true, seconds

MAX_INDEXES = 1_000_000
"""Larger ranges are not expanded; Kubernetes allows fewer completions in an Indexed Job."""

Owner = TypeVar("Owner", bound=wire.OwnerReference)

PodSlot = Callable[[wire.Labels, wire.OwnerReference | None], Slot]
JobSlot = Callable[[wire.Job, wire.OwnerReference | None], Slot]

_POD_SLOTS: Final[dict[str, PodSlot]] = {JOBSET.gated: jobset_source.pod_slot, JOB.gated: job_source.pod_slot}
_JOB_SLOTS: Final[dict[str, JobSlot]] = {JOBSET.gated: jobset_source.job_slot, JOB.gated: job_source.job_slot}
"""By the value of the label jobset-gate.dev/gated."""

jobset = jobset_source.workload

_PHASES = {phase: phase for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown")}
_WAITING, _RUNNING, _PASSED, _FAILED = (
    BarrierStage  # looking up a member of an enum takes as long as an `if`, several times
)


def slot_of_pod(labels: wire.Labels, owner: wire.OwnerReference | None) -> Slot:
    """Gang and slot of a gated pod with this controller owner."""
    return _POD_SLOTS.get(labels.gated, jobset_source.pod_slot)(labels, owner)


def pod(seen: wire.Pod | wire.MemberPod, slot: PodSlot = slot_of_pod) -> PodSeen:
    """A gated pod (A4, A9). Called for each pod event, so it is written for speed."""
    meta = seen.metadata
    labels, notes, status = meta.labels or wire.NO_LABELS, meta.annotations or NO_ANNOTATIONS, seen.status
    stage, since = _stage(barrier_status(status))
    created = seconds(meta.creation_timestamp)
    deleting = meta.deletion_timestamp is not None
    bound = seen.spec.node_name != ""
    # Any user who may create pods can write labels; a pod of the gang has an owning Job, which `count` checks.
    owner = controller_owner(meta.owner_references)
    source, gang, workload_uid, replicated_job, job_index, attempt = slot(labels, owner)
    started = (stage is _RUNNING or stage is _PASSED) and not deleting and status.phase != "Failed"
    return PodSeen(  # positional: twenty-one keywords cost a quarter of the call
        intern_text(meta.namespace),
        meta.name,
        meta.uid,
        source,
        gang,
        workload_uid,
        "" if owner is None else owner.uid,
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
        None
        if started
        else pending_reason.classify_pending(status, seen.spec.scheduling_gates, bound=bound, deleting=deleting),
    )


def written_at(seen: wire.Pod | wire.MemberPod | wire.ConfigMap) -> float | None:
    """When the API server last wrote a change of the object's fields, by its own clock; None if that is unknown.

    Of a pod, creation and each status of the kubelet have a time; binding and deletion have none. Users can write
    managedFields.
    """
    latest = max((it.time or "" for it in seen.metadata.managed_fields or ()), default="")
    try:
        return datetime.fromisoformat(latest).timestamp()
    except (ValueError, OverflowError):
        return None


def job(seen: wire.Job) -> JobSeen:
    """A gated Job (A4: a finished slot needs no pod)."""
    meta, status = seen.metadata, seen.status
    labels = meta.labels or wire.NO_LABELS
    ends = any(is_condition_true(status.conditions, kind) for kind in ("Failed", "FailureTarget"))
    slot_of, owner = _JOB_SLOTS.get(labels.gated, jobset_source.job_slot), controller_owner(meta.owner_references)
    source, gang, workload_uid, replicated_job, job_index, attempt = slot_of(seen, owner)
    return JobSeen(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        source=source,
        gang=gang,
        workload_uid=workload_uid,
        replicated_job=replicated_job,
        job_index=job_index,
        attempt=attempt,
        suspended=bool(seen.spec.suspend),
        deleting=meta.deletion_timestamp is not None,
        complete=is_condition_true(status.conditions, "Complete"),
        succeeded=status.succeeded or 0,
        completed=parse_indexes(status.completed_indexes or ""),
        failed=frozenset() if ends else parse_indexes(status.failed_indexes or ""),
        workload=job_source.workload(seen),
    )


def config_map(seen: wire.ConfigMap) -> ConfigMapSeen | None:
    """A verdict ConfigMap; None without our label or a gang's name (A10)."""
    meta = seen.metadata
    source = next((it for it in SOURCES.values() if meta.name.endswith(it.config_map_suffix)), None)
    if source is None or meta.labels is None or meta.labels.gate != names.GATE_VALUE:
        return None
    data = seen.data or {}
    verdict = verdict_codec.parse(data.get(names.KEY_VERDICT, ""))
    clock = verdict_codec.parse_clock(data.get(names.KEY_WAITING_SINCE, ""))
    notes = meta.annotations or NO_ANNOTATIONS
    gang = meta.name.removesuffix(source.config_map_suffix)
    noted = workload_uid = notes.jobset_uid[:MAX_TEXT]
    membership, selected, members = None, True, ""
    if source.keeps_attempt:  # its name has the UID
        group, _, workload_uid = gang.partition(".")
        membership, selected = verdict_codec.parse_membership(data), meta.labels.start_group == group
        _, members = verdict_codec.parse_members(data.get(names.KEY_MEMBERS, ""))
    owned = noted == workload_uid and any(owner.uid == workload_uid for owner in meta.owner_references or ())
    return ConfigMapSeen(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        source=source.name,
        gang=gang,
        workload_uid=workload_uid,
        verdict=verdict,
        waiting_since=clock,
        canonical=owned and selected and data == verdict_codec.config_map_data(verdict, clock, membership, members),
        deleting=meta.deletion_timestamp is not None,
        written_at=written_at(seen),
        membership=membership,
        condition=_noted_condition(notes) if source.keeps_attempt else None,
    )


def _noted_condition(notes: wire.Annotations) -> ConditionSeen | None:
    """The condition GroupStarted in the annotations of a start group's ConfigMap (K7); it has no time."""
    reason, _, message = notes.gang_state.partition(": ")
    if not reason:
        return None
    return ConditionSeen(status=notes.group_started, reason=reason, message=message, since="")


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


def controller_owner(owners: Sequence[Owner] | None) -> Owner | None:
    """The controller owner."""
    for owner in owners or ():
        if owner.controller:
            return owner
    return None


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
