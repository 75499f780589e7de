"""The source `job`: how an Indexed Job and its pods become the snapshot of a gang.

The Job is workload and only Job of its gang. It has one attempt; its epoch counts resumptions.
"""

from functools import lru_cache
from typing import Final

import msgspec

from jobset_gate.barrier import wire
from jobset_gate.barrier.model import WorkloadSeen
from jobset_gate.sources import templates
from jobset_gate.sources.slot import Slot
from jobset_gate.sources.table import JOB

TARGET: Final = ""
"""Name of the only template: a Job has none of its own, so slots are shown by their index alone."""

_FAILED: Final = ("Failed", "FailureTarget")
ENDS: Final = ("Complete", "SuccessCriteriaMet", *_FAILED)


def workload(seen: wire.Job) -> WorkloadSeen | None:
    """A Job with our annotation and label; None for all others."""
    meta, spec, status = seen.metadata, seen.spec, seen.status
    notes = meta.annotations or templates.NO_ANNOTATIONS
    if notes.config is None or (meta.labels or wire.NO_LABELS).gated != JOB.gated:
        return None
    template = msgspec.json.decode(spec.template, type=wire.PodTemplate)
    its = wire.JobTemplateSpec(
        parallelism=spec.parallelism,
        completions=spec.completions,
        completion_mode=spec.completion_mode or "NonIndexed",
        template=template,
    )
    ends = [kind for kind in ENDS if templates.is_condition_true(status.conditions, kind)]
    return templates.workload(
        JOB,
        seen,
        None,
        [its],
        attempt=0,
        finished=bool(ends),
        failed=any(kind in _FAILED for kind in ends),
        finished_message=templates.finished_message(status.conditions, ENDS) if ends else "",
        replicated_jobs=(templates.target(TARGET, 1, its, counted=templates.within_device_limits(template.spec)),),
        stale_start=_stale_start(seen),
    )


def _stale_start(seen: wire.Job) -> str:
    """Before Kubernetes 1.36 the Job controller leaves startTime when it suspends a Job (K4)."""
    status = seen.status
    if not seen.spec.suspend or status.active or status.start_time is None:
        return ""
    return seen.metadata.resource_version if templates.is_condition_true(status.conditions, "Suspended") else ""


def pod_slot(_: wire.Labels, owner: wire.OwnerReference | None) -> Slot:
    """The slot of a pod: its controller owner is the Job."""
    return _slot("", "") if owner is None else _slot(owner.name, owner.uid)


def job_slot(seen: wire.Job, _: wire.OwnerReference | None) -> Slot:
    """The slots of the Job itself."""
    return _slot(seen.metadata.name, seen.metadata.uid)


@lru_cache(maxsize=4096)
def _slot(name: str, uid: str) -> Slot:
    """One copy for all pods of a Job."""
    return Slot(JOB.name, name, uid, TARGET, 0, 0)
