"""The source `jobset`: how a JobSet, its Jobs and their pods become the snapshot of a gang."""

from functools import lru_cache
from typing import Final

from jobset_gate.barrier import verdict_codec, wire
from jobset_gate.barrier.model import WorkloadSeen
from jobset_gate.objects.caches import intern_text
from jobset_gate.sources import templates
from jobset_gate.sources.slot import Slot
from jobset_gate.sources.table import JOBSET

NO_INDEX: Final = -1
"""Of a label without an index; matches no slot."""

_ENDS = _COMPLETED, _FAILED = "Completed", "Failed"


def workload(seen: wire.JobSet) -> WorkloadSeen | None:
    """A JobSet with a config in field or annotation; None for all others (A2)."""
    meta, spec, status = seen.metadata, seen.spec, seen.status
    notes = meta.annotations or templates.NO_ANNOTATIONS
    raw = bytes(spec.group_scheduling_config)
    field = None if raw in (b"", b"null") else raw
    if field is None and notes.config is None:
        return None
    jobs = spec.replicated_jobs or ()
    specs = [job.template.spec for job in jobs]
    counted = templates.within_device_limits(*(spec.template.spec for spec in specs))
    failed = status.terminal_state == _FAILED or templates.is_condition_true(status.conditions, _FAILED)
    finished = failed or bool(status.terminal_state) or templates.is_condition_true(status.conditions, _COMPLETED)
    return templates.workload(
        JOBSET,
        seen,
        field,
        specs,
        attempt=status.restarts or 0,
        finished=finished,
        failed=failed,
        finished_message=templates.finished_message(status.conditions, _ENDS) if finished else "",
        replicated_jobs=tuple(
            templates.target(job.name, 1 if job.replicas is None else job.replicas, spec, counted=counted)
            for job, spec in zip(jobs, specs, strict=True)
        ),
    )


def pod_slot(labels: wire.Labels, owner: wire.OwnerReference | None) -> Slot:
    """The slot of a pod. Without an owning Job it belongs to no workload, whatever its labels claim."""
    slot = _slot(labels)
    return slot if owner is not None else slot._replace(workload_uid="")


def job_slot(seen: wire.Job, owner: wire.OwnerReference | None) -> Slot:
    """The slots of a Job. It belongs to the JobSet that owns it."""
    slot = _slot(seen.metadata.labels or wire.NO_LABELS)
    return slot if owner is not None and owner.uid == slot.workload_uid else slot._replace(workload_uid="")


@lru_cache(maxsize=4096)
def _slot(labels: wire.Labels) -> Slot:
    """One copy for all pods of a Job."""
    return Slot(
        JOBSET.name,
        intern_text(labels.jobset),
        intern_text(labels.jobset_uid),
        intern_text(labels.replicated_job),
        verdict_codec.parse_number(labels.job_index, NO_INDEX),
        verdict_codec.parse_number(labels.attempt, NO_INDEX),
    )
