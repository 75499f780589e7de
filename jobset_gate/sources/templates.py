"""Decodes what workloads of every source have: config, condition GroupStarted, and the templates of their pods.

Missing and malformed values are read as absent: objects may have been created while the webhook was off.
"""

from collections.abc import Container, Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Final, NotRequired, TypedDict, Unpack

import msgspec

from jobset_gate import names
from jobset_gate.barrier import config, pending_reason, verdict_codec, wire
from jobset_gate.barrier.model import ConditionSeen, Config, ReplicatedJobSeen, WorkloadSeen
from jobset_gate.barrier.source import Source
from jobset_gate.errors import Malformed
from jobset_gate.objects import devices, terminal_text
from jobset_gate.objects.caches import BoundedCache

MAX_TEXT = 1000
"""Characters that are kept of a user's text; many objects may carry one."""

MAX_RESOURCES_BYTES = 256 * 1024
"""JSON size of the resources of all containers of a workload; of a larger one no device is counted."""

MAX_DEVICE_AMOUNTS = 2000
"""Device quantities of a workload; of one with more no device is counted."""

_CACHED_RESOURCES_BYTES: Final = 4 * 1024 * 1024
_OVERHEAD: Final = 64
"""Bytes of one text in a key, in addition to its characters."""
_member_devices: Final = BoundedCache[tuple[tuple[str, ...], tuple[bytes, ...]], devices.Devices](
    _CACHED_RESOURCES_BYTES
)
"""By restart policies of the init containers, and the resources of all containers as JSON."""

NO_ANNOTATIONS = wire.Annotations()
_NO_CONFIG = Config()


def seconds(moment: datetime | None) -> float | None:
    """Seconds since the epoch."""
    return None if moment is None else moment.timestamp()


def is_condition_true(conditions: list[wire.Condition] | None, kind: str) -> bool:
    """True if the condition of this type is True."""
    return any(condition.type == kind and condition.status == "True" for condition in conditions or ())


def our_condition(conditions: list[wire.Condition] | None) -> ConditionSeen | None:
    """The condition GroupStarted."""
    for condition in conditions or ():
        if condition.type == names.CONDITION:
            return ConditionSeen(
                status=condition.status,
                reason=condition.reason,
                message=condition.message,
                since=condition.last_transition_time or "",
            )
    return None


def finished_message(conditions: list[wire.Condition] | None, ends: Container[str]) -> str:
    """Message of the condition of one of these types that is True. Any client that may write the status can set it."""
    said = (it.message for it in conditions or () if it.type in ends and it.status == "True")
    return terminal_text.line(next(said, "")[:MAX_TEXT])[: pending_reason.MAX_MESSAGE]


def stored_config(field: bytes | None, annotation: str | None, source: Source) -> tuple[Config, str]:
    """The config, and why it is invalid."""
    try:
        return config.stored_config(field, annotation, has_targets=source.has_targets), ""
    except Malformed as problem:
        return _NO_CONFIG, str(problem)[:MAX_TEXT]


class OwnFields(TypedDict):
    """The fields of WorkloadSeen that only its source can tell."""

    attempt: int
    finished: bool
    failed: bool
    finished_message: str
    replicated_jobs: tuple[ReplicatedJobSeen, ...]
    stale_start: NotRequired[str]


def workload(
    source: Source,
    seen: wire.JobSet | wire.Job,
    config_field: bytes | None,
    specs: Sequence[wire.JobTemplateSpec],
    **its_own: Unpack[OwnFields],
) -> WorkloadSeen:
    """A workload, whose objects have most fields in the same places whatever the source."""
    meta, spec, status = seen.metadata, seen.spec, seen.status
    notes = meta.annotations or NO_ANNOTATIONS
    wanted, problem = stored_config(config_field, notes.config, source)
    return WorkloadSeen(
        source=source,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        created=seconds(meta.creation_timestamp) or 0.0,
        suspended=bool(spec.suspend),
        deleting=meta.deletion_timestamp is not None,
        managed_elsewhere=source.is_managed_elsewhere(spec.managed_by),
        config=wanted,
        config_problem=problem,
        bypass=notes.bypass == "true",
        releases_on_timeout=notes.on_timeout == names.ON_TIMEOUT_RELEASE,
        condition=our_condition(status.conditions),
        token=stream_token(specs),
        **its_own,
    )


def target(name: str, replicas: int, spec: wire.JobTemplateSpec, *, counted: bool) -> ReplicatedJobSeen:
    """One template of a workload; `counted`: with its devices."""
    notes = spec.template.metadata.annotations or NO_ANNOTATIONS
    return ReplicatedJobSeen(
        name=name,
        replicas=replicas,
        parallelism=1 if spec.parallelism is None else spec.parallelism,
        completions=spec.completions,
        indexed=spec.completion_mode != "NonIndexed",
        has_barrier=barrier_container(spec.template.spec) is not None,
        epoch=verdict_codec.parse_epoch(notes.epoch),
        devices=pod_devices(spec.template.spec) if counted else (),
    )


def within_device_limits(*pods: wire.TemplatePodSpec) -> bool:
    """True if the device quantities of all containers of these specs of pods are within the limits."""
    containers = [it for pod in pods for it in (*(pod.containers or ()), *(pod.init_containers or ()))]
    said = [raw for it in containers for raw in (it.resources.requests, it.resources.limits)]
    if sum(len(memoryview(raw)) for raw in said) > MAX_RESOURCES_BYTES:
        return False
    named = (name for raw in said for name in _amounts(raw) if devices.is_device(name))
    return next(islice(named, MAX_DEVICE_AMOUNTS, None), None) is None


def _amounts(raw: msgspec.Raw) -> dict[str, Any]:
    return msgspec.json.decode(raw, type=dict[str, Any] | None) or {}


def pod_devices(seen: wire.TemplatePodSpec) -> devices.Devices:
    """Extended resources of a pod: (resource name, count)."""
    mains = [_container_devices(container) for container in seen.containers or ()]
    inits = [(_container_devices(it), it.restart_policy == "Always") for it in seen.init_containers or ()]
    return devices.pod_devices(mains, inits)


def member_devices(seen: wire.MemberPodSpec) -> devices.Devices:
    """The same of a pod that is gated alone; () beyond the limits.

    Pods of one template ask for the same, and to read it takes 40 times as long as the rest of a pod's event.
    """
    inits, mains = seen.init_containers or (), seen.containers or ()
    said = [raw for it in (*inits, *mains) for raw in (it.resources.requests, it.resources.limits)]
    key = tuple(it.restart_policy for it in inits), tuple(map(bytes, said))
    known = _member_devices.get(key)
    if known is None:
        found = pod_devices(seen) if within_device_limits(seen) else ()
        known = _member_devices.put(key, found, sum(_OVERHEAD + len(raw) for raw in key[1]))
    return known


def _container_devices(seen: wire.MainContainer) -> dict[str, int]:
    return devices.container_devices(_amounts(seen.resources.requests), _amounts(seen.resources.limits))


def stream_token(specs: Iterable[wire.JobTemplateSpec]) -> str:
    """The gang's token at the gate stream: the last part of the URL in each barrier's environment."""
    for spec in specs:
        barrier = barrier_container(spec.template.spec)
        for variable in (barrier and barrier.env) or ():
            if variable.name == names.ENV_STREAM and variable.value:
                return variable.value.rpartition("/")[2][:MAX_TEXT]
    return ""


def barrier_container(spec: wire.TemplatePodSpec) -> wire.InitContainer | None:
    """The barrier container in the spec of a pod."""
    containers = spec.init_containers or ()
    return next((container for container in containers if container.name == names.BARRIER_CONTAINER), None)
