"""Wire structs: the fields of Kubernetes objects that the start barrier depends on, decoded straight from JSON.

msgspec skips every other field, so a pod event costs microseconds. `decode.py` converts these structs to the values of
`model.py`.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec import field

from jobset_gate import names


class WireStruct(msgspec.Struct, rename="camel", frozen=True, gc=False, kw_only=True):
    """Base of all wire structs: camelCase in JSON; null is the same as absent."""


class WireMeta(WireStruct, frozen=True):
    """Identity and version of an object."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class ObjectMeta(WireMeta, frozen=True):
    """metadata without labels and annotations."""

    name: str = ""


class Labels(msgspec.Struct, frozen=True, gc=False):
    """Labels of a gated pod or Job: its slot in the gang; of a ConfigMap: `gate`; of a JobSet: Kueue's queue."""

    jobset: str = field(default="", name=names.JS_NAME)
    jobset_uid: str = field(default="", name=names.JS_UID)
    replicated_job: str = field(default="", name=names.JS_REPLICATED_JOB)
    job_index: str = field(default="", name=names.JS_JOB_INDEX)
    attempt: str = field(default="", name=names.JS_RESTART_ATTEMPT)
    gated: str = field(default="", name=names.GATED)
    gate: str = field(default="", name=names.GATE)
    queue: str = field(default="", name=names.KUEUE_QUEUE)
    start_group: str = field(default="", name=names.START_GROUP)
    lws: str = field(default="", name=names.LWS_NAME)
    worker_index: str = field(default="", name=names.LWS_WORKER_INDEX)


class Annotations(msgspec.Struct, frozen=True, gc=False):
    """Annotations of a gated pod or its template, of a JobSet, and of a gang's ConfigMap."""

    epoch: str = field(default="", name=names.EPOCH)
    verdict: str = field(default="", name=names.VERDICT)
    index: str = field(default="", name=names.JOB_COMPLETION_INDEX)
    config: str | None = field(default=None, name=names.CONFIG)
    bypass: str = field(default="", name=names.BYPASS)
    on_timeout: str = field(default="", name=names.ON_TIMEOUT)
    jobset_uid: str = field(default="", name=names.JOBSET_UID)
    start_size: str = field(default="", name=names.START_SIZE)
    lws_size: str = field(default="", name=names.LWS_SIZE)
    token: str = field(default="", name=names.TOKEN)
    group_started: str = field(default="", name=names.GROUP_STARTED)
    gang_state: str = field(default="", name=names.GANG_STATE)


NO_LABELS = Labels()


class OwnerReference(WireStruct, frozen=True):
    """An owner; `controller`: the one that manages the object."""

    name: str = ""
    uid: str = ""
    controller: bool = False


class ManagedFields(WireStruct, frozen=True):
    """An entry of managedFields; `time`: when the API server wrote the latest change of that manager."""

    manager: str = ""
    subresource: str = ""
    time: str | None = None


class Meta(WireMeta, frozen=True):
    """metadata of a pod, Job, JobSet or ConfigMap."""

    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: Labels | None = None
    annotations: Annotations | None = None
    owner_references: Sequence[OwnerReference] | None = None


class Condition(WireStruct, frozen=True):
    """A condition of a pod, Job or JobSet. The API server stores null for a time that was not given."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class AnyObject(WireStruct, frozen=True):
    """The identity of an object of any kind."""

    metadata: WireMeta


# --- Pods ----------------------------------------------------------------------------------------------------------


class StateDetail(WireStruct, frozen=True):
    """One state of a container; times are whole seconds of its node's clock."""

    exit_code: int = -1
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(WireStruct, frozen=True):
    """At most one of three; none means waiting."""

    waiting: StateDetail | None = None
    running: StateDetail | None = None
    terminated: StateDetail | None = None


class ContainerStatus(WireStruct, frozen=True):
    name: str
    ready: bool = False
    """Of a running init container: it is a native sidecar, since others become ready only by ending."""
    restart_count: int = 0
    state: ContainerState | None = None
    last_state: ContainerState | None = None


class PodStatus(WireStruct, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[Condition] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    container_statuses: list[ContainerStatus] | None = None


class DatedMeta(Meta, frozen=True):
    """metadata of an object whose last write matters."""

    managed_fields: tuple[ManagedFields, ...] | None = None


class SchedulingGate(WireStruct, frozen=True):
    name: str = ""


class PodSpec(WireStruct, frozen=True):
    node_name: str = ""
    scheduling_gates: list[SchedulingGate] | None = None


class Pod(WireStruct, frozen=True):
    """A core/v1 Pod."""

    metadata: DatedMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


# --- Jobs ----------------------------------------------------------------------------------------------------------


class JobSpec(WireStruct, frozen=True):
    """spec of a Job. The template stays raw: that of a JobSet's Job is read from the JobSet (A4)."""

    suspend: bool | None = None
    managed_by: str | None = None
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    template: msgspec.Raw = msgspec.Raw(b"{}")


class JobStatus(WireStruct, frozen=True):
    start_time: str | None = None
    active: int | None = None
    succeeded: int | None = None
    completed_indexes: str | None = None
    failed_indexes: str | None = None
    conditions: list[Condition] | None = None


class Job(WireStruct, frozen=True):
    """A batch/v1 Job."""

    metadata: Meta
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


# --- JobSets -------------------------------------------------------------------------------------------------------


class TemplateMeta(WireStruct, frozen=True):
    """metadata of a pod template."""

    annotations: Annotations | None = None


class EnvVar(WireStruct, frozen=True):
    """An environment variable of a container."""

    name: str = ""
    value: str | None = None


class ResourceRequirements(WireStruct, frozen=True):
    """Resources of a container, as JSON: a tenant may name as many as an object holds."""

    requests: msgspec.Raw = msgspec.Raw(b"null")
    limits: msgspec.Raw = msgspec.Raw(b"null")


class MainContainer(WireStruct, frozen=True):
    """A main container of a pod template."""

    name: str = ""
    resources: ResourceRequirements = ResourceRequirements()


class InitContainer(MainContainer, frozen=True):
    """An init container of a pod template; it may be the barrier."""

    env: list[EnvVar] | None = None
    restart_policy: str = ""


class TemplatePodSpec(WireStruct, frozen=True):
    init_containers: list[InitContainer] | None = None
    containers: list[MainContainer] | None = None


class PodTemplate(WireStruct, frozen=True):
    metadata: TemplateMeta = TemplateMeta()
    spec: TemplatePodSpec = TemplatePodSpec()


class JobTemplateSpec(WireStruct, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    template: PodTemplate = PodTemplate()


class JobTemplate(WireStruct, frozen=True):
    spec: JobTemplateSpec = JobTemplateSpec()


class ReplicatedJob(WireStruct, frozen=True):
    """One entry of spec.replicatedJobs."""

    name: str
    replicas: int | None = None
    template: JobTemplate = JobTemplate()


class JobSetSpec(WireStruct, frozen=True):
    """spec of a JobSet. The config stays raw: without the webhook it may be anything."""

    suspend: bool | None = None
    managed_by: str | None = None
    replicated_jobs: list[ReplicatedJob] | None = None
    group_scheduling_config: msgspec.Raw = msgspec.Raw(b"")


class JobSetStatus(WireStruct, frozen=True):
    restarts: int | None = None
    terminal_state: str | None = None
    conditions: list[Condition] | None = None


class JobSet(WireStruct, frozen=True):
    """A jobset.x-k8s.io/v1alpha2 JobSet."""

    metadata: Meta
    spec: JobSetSpec = JobSetSpec()
    status: JobSetStatus = JobSetStatus()


# --- Pods of start groups ------------------------------------------------------------------------------------------


class TypedOwnerReference(OwnerReference, frozen=True):
    """An owner with its type: a start group's may be of any."""

    kind: str = ""
    api_version: str = ""


class MemberMeta(DatedMeta, frozen=True):
    """metadata of a pod of a start group."""

    owner_references: Sequence[TypedOwnerReference] | None = None


class MemberPodSpec(TemplatePodSpec, frozen=True):
    """spec of a pod that is gated alone: it stands for its template, too."""

    node_name: str = ""
    scheduling_gates: list[SchedulingGate] | None = None


class MemberPod(WireStruct, frozen=True):
    """A core/v1 Pod of a start group."""

    metadata: MemberMeta
    spec: MemberPodSpec = MemberPodSpec()
    status: PodStatus = PodStatus()


class StatefulSetSpec(WireStruct, frozen=True):
    replicas: int | None = None
    pod_management_policy: str = ""


class StatefulSet(WireStruct, frozen=True):
    """An apps/v1 StatefulSet, as far as it says how many pods it can have at once."""

    metadata: ObjectMeta
    spec: StatefulSetSpec = StatefulSetSpec()


# --- ConfigMaps ----------------------------------------------------------------------------------------------------


class ConfigMap(WireStruct, frozen=True):
    """A core/v1 ConfigMap that may be a gang's."""

    metadata: DatedMeta
    data: dict[str, str] | None = None
