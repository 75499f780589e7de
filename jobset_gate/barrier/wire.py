"""The parts of Kubernetes objects that jobset-gate looks at, as typed shapes to decode straight from the wire.

msgspec skips everything that is not named here, which is why a pod event costs microseconds. `read.py` turns these
shapes into the words of `model.py`; nothing else looks into them.
"""

from datetime import datetime

import msgspec

from jobset_gate import names


class WireStruct(msgspec.Struct, rename="camel", frozen=True, gc=False, kw_only=True):
    """Base of every shape: the API's camelCase outside, ours inside; absent and null are the same."""


class WireMeta(WireStruct, frozen=True):
    """metadata of any object: which one it is, and in which version."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class ObjectMeta(WireMeta, frozen=True):
    """metadata without labels and annotations."""

    name: str = ""


class MetadataOnly(WireStruct, frozen=True):
    """An object without spec and status."""

    metadata: ObjectMeta


# --- Pods ----------------------------------------------------------------------------------------------------------


class GangLabels(
    msgspec.Struct,
    frozen=True,
    gc=False,
    rename={
        "jobset": names.JS_NAME,
        "jobset_uid": names.JS_UID,
        "replicated_job": names.JS_REPLICATED_JOB,
        "job_index": names.JS_JOB_INDEX,
        "attempt": names.JS_RESTART_ATTEMPT,
    },
):
    """The labels of a gated pod or Job that say where in which gang it belongs."""

    jobset: str = ""
    jobset_uid: str = ""
    replicated_job: str = ""
    job_index: str = ""
    attempt: str = ""


class OwnerReference(WireStruct, frozen=True):
    """Who takes an object along when it goes; `controller`: and who made it."""

    uid: str = ""
    controller: bool = False


class PodAnnotations(
    msgspec.Struct,
    frozen=True,
    gc=False,
    rename={"epoch": names.EPOCH, "verdict": names.VERDICT, "index": names.JOB_COMPLETION_INDEX},
):
    """The annotations of a gated pod."""

    epoch: str = ""
    verdict: str = ""
    index: str = ""


class PodMeta(WireMeta, frozen=True):
    """metadata of a gated pod."""

    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: GangLabels | None = None
    annotations: PodAnnotations | None = None
    owner_references: list[OwnerReference] | None = None


class ContainerStateWaiting(WireStruct, frozen=True):
    """A container that waits, and why."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(WireStruct, frozen=True):
    """A container that runs since a whole second of its node's clock."""

    started_at: datetime | None = None


class ContainerStateTerminated(WireStruct, frozen=True):
    """A container that has ended."""

    exit_code: int = -1
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None


class ContainerState(WireStruct, frozen=True):
    """One of three; none of them means waiting."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(WireStruct, frozen=True):
    """What the kubelet says of one container."""

    name: str
    ready: bool = False
    """Of an init container that runs: it is a native sidecar, since the others are ready only once they have ended."""
    restart_count: int = 0
    state: ContainerState | None = None
    last_state: ContainerState | None = None


class PodCondition(WireStruct, frozen=True):
    """One condition of a pod."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""


class PodStatus(WireStruct, frozen=True):
    """status of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[PodCondition] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    container_statuses: list[ContainerStatus] | None = None


class PodSpec(WireStruct, frozen=True):
    """spec of a running pod, as far as waiting is concerned."""

    node_name: str = ""


class Pod(WireStruct, frozen=True):
    """A core/v1 Pod."""

    metadata: PodMeta
    spec: PodSpec | None = None
    status: PodStatus | None = None


# --- Jobs ----------------------------------------------------------------------------------------------------------


class JobMeta(WireMeta, frozen=True):
    """metadata of a gated Job."""

    deletion_timestamp: datetime | None = None
    labels: GangLabels | None = None
    owner_references: list[OwnerReference] | None = None


class JobSpec(WireStruct, frozen=True):
    """spec of a Job that exists; how many pods it shall have is read from the JobSet (A4)."""

    suspend: bool | None = None


class StatusCondition(PodCondition, frozen=True):
    """A condition of a Job or a JobSet, which is also asked since when it is so."""

    last_transition_time: str = ""


class JobStatus(WireStruct, frozen=True):
    """status of a Job."""

    succeeded: int | None = None
    completed_indexes: str | None = None
    conditions: list[StatusCondition] | None = None


class Job(WireStruct, frozen=True):
    """A batch/v1 Job."""

    metadata: JobMeta
    spec: JobSpec | None = None
    status: JobStatus | None = None


# --- JobSets -------------------------------------------------------------------------------------------------------


class JobSetAnnotations(
    msgspec.Struct,
    frozen=True,
    gc=False,
    rename={"config": names.CONFIG, "bypass": names.BYPASS, "on_timeout": names.ON_TIMEOUT},
):
    """Our annotations on a JobSet, as far as the controller needs them."""

    config: str | None = None
    bypass: str = ""
    on_timeout: str = ""


class JobSetMeta(WireMeta, frozen=True):
    """metadata of a JobSet."""

    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    annotations: JobSetAnnotations | None = None


class TemplateAnnotations(msgspec.Struct, frozen=True, gc=False, rename={"epoch": names.EPOCH}):
    """Our annotation on a pod template."""

    epoch: str = ""


class TemplateMeta(WireStruct, frozen=True):
    """metadata of a pod template."""

    annotations: TemplateAnnotations | None = None


class EnvVar(WireStruct, frozen=True):
    """A variable of a container's environment."""

    name: str = ""
    value: str | None = None


class ResourceRequirements(WireStruct, frozen=True):
    """What a container asks for, as JSON: a tenant may name as many resources as an object holds."""

    requests: msgspec.Raw = msgspec.Raw(b"null")
    limits: msgspec.Raw = msgspec.Raw(b"null")


class TemplateContainer(WireStruct, frozen=True):
    """A container of a pod template: is it the barrier, where does it announce itself, and which devices has it?"""

    name: str = ""
    env: list[EnvVar] | None = None
    resources: ResourceRequirements | None = None
    restart_policy: str = ""


class MainContainer(WireStruct, frozen=True):
    """A main container of a pod template: which devices has it?"""

    resources: ResourceRequirements | None = None


class TemplatePodSpec(WireStruct, frozen=True):
    """spec of a pod template: is the barrier in it, and which devices do its pods occupy?"""

    init_containers: list[TemplateContainer] | None = None
    containers: list[MainContainer] | None = None


class PodTemplate(WireStruct, frozen=True):
    """A pod template."""

    metadata: TemplateMeta | None = None
    spec: TemplatePodSpec | None = None


class JobTemplateSpec(WireStruct, frozen=True):
    """spec of a Job template."""

    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    template: PodTemplate | None = None


class JobTemplate(WireStruct, frozen=True):
    """A Job template."""

    spec: JobTemplateSpec | None = None


class ReplicatedJob(WireStruct, frozen=True):
    """One entry of spec.replicatedJobs."""

    name: str
    replicas: int | None = None
    template: JobTemplate | None = None


class JobSetSpec(WireStruct, frozen=True):
    """spec of a JobSet. The config stays raw: a webhook that was off may have let anything in."""

    suspend: bool | None = None
    managed_by: str | None = None
    replicated_jobs: list[ReplicatedJob] | None = None
    group_scheduling_config: msgspec.Raw = msgspec.Raw(b"")


class JobSetStatus(WireStruct, frozen=True):
    """status of a JobSet."""

    restarts: int | None = None
    terminal_state: str | None = None
    conditions: list[StatusCondition] | None = None


class JobSet(WireStruct, frozen=True):
    """A jobset.x-k8s.io/v1alpha2 JobSet."""

    metadata: JobSetMeta
    spec: JobSetSpec | None = None
    status: JobSetStatus | None = None


# --- ConfigMaps ----------------------------------------------------------------------------------------------------


class ConfigMapAnnotations(msgspec.Struct, frozen=True, gc=False, rename={"jobset_uid": names.JOBSET_UID}):
    """Our annotation on a gang's ConfigMap."""

    jobset_uid: str = ""


class ConfigMapLabels(msgspec.Struct, frozen=True, gc=False, rename={"gate": names.GATE}):
    """Our label on a gang's ConfigMap."""

    gate: str = ""


class ConfigMapMeta(WireMeta, frozen=True):
    """metadata of a gang's ConfigMap."""

    deletion_timestamp: datetime | None = None
    labels: ConfigMapLabels | None = None
    annotations: ConfigMapAnnotations | None = None
    owner_references: list[OwnerReference] | None = None


class ConfigMap(WireStruct, frozen=True):
    """A core/v1 ConfigMap that may be a gang's."""

    metadata: ConfigMapMeta
    data: dict[str, str] | None = None
