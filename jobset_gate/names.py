"""Every label, annotation, key, container, file and reason that jobset-gate writes into a cluster or looks for."""

from typing import Final

DOMAIN: Final = "jobset-gate.dev"
PROGRAM: Final = "jobset-gate"
FIELD_MANAGER: Final = "jobset-gate"

# --- On a JobSet (A2) -------------------------------------------------------------------------------------------
CONFIG_FIELD: Final = "groupSchedulingConfig"
TIMEOUT_FIELD: Final = "timeoutAfterSeconds"
TARGETS_FIELD: Final = "targetReplicatedJobs"

CONFIG: Final = "jobset-gate.dev/group-scheduling-config"
BYPASS: Final = "jobset-gate.dev/bypass"
ON_TIMEOUT: Final = "jobset-gate.dev/on-timeout"
PREFETCH_IMAGES: Final = "jobset-gate.dev/prefetch-images"
BARRIER_IMAGE: Final = "jobset-gate.dev/barrier-image"
OUR_JOBSET_ANNOTATIONS: Final = (CONFIG, BYPASS, ON_TIMEOUT, PREFETCH_IMAGES, BARRIER_IMAGE)

ON_TIMEOUT_FAIL: Final = "Fail"
ON_TIMEOUT_RELEASE: Final = "Release"

# --- In the templates that the webhook renders (A3, A5) ----------------------------------------------------------
GATED: Final = "jobset-gate.dev/gated"
"""Label on gated Jobs and pods; the only thing the controller selects them by."""
GATED_VALUE: Final = "true"
EPOCH: Final = "jobset-gate.dev/epoch"
BARRIER_CONTAINER: Final = "group-scheduling-init"
VOLUME: Final = "group-scheduling"
MOUNT_PATH: Final = "/mnt/group-scheduling"
VERDICT_FILE: Final = "verdict"
ANNOTATION_FILE: Final = "annotation"

ENV_UID: Final = "JOBSET_GATE_UID"
ENV_ATTEMPT: Final = "JOBSET_GATE_ATTEMPT"
ENV_EPOCH: Final = "JOBSET_GATE_EPOCH"
ENV_LIMIT: Final = "JOBSET_GATE_LIMIT"
ENV_STREAM: Final = "JOBSET_GATE_STREAM"
"""The gang's place on the gate stream: `<base URL>/v1/gangs/<namespace>/<jobset>/<token>`."""
ENV_POD: Final = "JOBSET_GATE_POD"

PREFETCH_CONTAINER: Final = "group-scheduling-prefetch"
"""Puts the program into the volume; the containers that run it in the main images add `-1`, `-2` and so on (A8)."""
PREFETCH_VOLUME: Final = "group-scheduling-prefetch"
PREFETCH_PATH: Final = "/mnt/group-scheduling-prefetch"
PREFETCH_PROGRAM: Final = "/mnt/group-scheduling-prefetch/true"
"""A busybox of that name does what it says."""

EXIT_TIMED_OUT: Final = 124
"""The barrier's exit code on a timeout verdict and at its own limit (A7), the one of timeout(1)."""

# --- On pods, written after the decision (A6) ---------------------------------------------------------------------
VERDICT: Final = "jobset-gate.dev/verdict"
NUDGE: Final = "jobset-gate.dev/nudge"
"""Changed on a straggler, so that the kubelet looks at a pod again whose verdict annotation is already there."""

# --- The gang's ConfigMap (A6, A7, A10) ----------------------------------------------------------------------------
CONFIG_MAP_SUFFIX: Final = "-group-scheduling"
GATE: Final = "jobset-gate.dev/gate"
"""Label on our ConfigMaps."""
GATE_VALUE: Final = "true"
JOBSET_UID: Final = "jobset-gate.dev/jobset-uid"
"""Annotation on our ConfigMaps: the UID of the JobSet they belong to."""
KEY_VERDICT: Final = "verdict"
KEY_WAITING_SINCE: Final = "waiting-since"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"

# --- The JobSet API's own names --------------------------------------------------------------------------------------
JOBSET_GROUP: Final = "jobset.x-k8s.io"
JOBSET_VERSION: Final = "v1alpha2"
JOBSET_API_VERSION: Final = "jobset.x-k8s.io/v1alpha2"
JOBSET_CRD: Final = "jobsets.jobset.x-k8s.io"
JOBSET_CONTROLLER: Final = "jobset.sigs.k8s.io/jobset-controller"
"""The value of spec.managedBy that means the same as none at all."""
JS_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
JS_UID: Final = "jobset.sigs.k8s.io/jobset-uid"
JS_REPLICATED_JOB: Final = "jobset.sigs.k8s.io/replicatedjob-name"
JS_REPLICATED_JOB_REPLICAS: Final = "jobset.sigs.k8s.io/replicatedjob-replicas"
JS_JOB_INDEX: Final = "jobset.sigs.k8s.io/job-index"
JS_JOB_KEY: Final = "jobset.sigs.k8s.io/job-key"
JS_JOB_GLOBAL_INDEX: Final = "jobset.sigs.k8s.io/job-global-index"
JS_GLOBAL_REPLICAS: Final = "jobset.sigs.k8s.io/global-replicas"
JS_RESTART_ATTEMPT: Final = "jobset.sigs.k8s.io/restart-attempt"
JS_JOB_RESTART_ATTEMPT: Final = "jobset.sigs.k8s.io/job-restart-attempt"
JS_GROUP_NAME: Final = "jobset.sigs.k8s.io/group-name"
JS_GROUP_REPLICAS: Final = "jobset.sigs.k8s.io/group-replicas"
JS_JOB_GROUP_INDEX: Final = "jobset.sigs.k8s.io/job-group-index"
JS_COORDINATOR: Final = "jobset.sigs.k8s.io/coordinator"

# --- The Job API's own names -----------------------------------------------------------------------------------------
JOB_NAME: Final = "batch.kubernetes.io/job-name"
JOB_CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
JOB_TRACKING_FINALIZER: Final = "batch.kubernetes.io/job-tracking"

# --- Words people see (A9) -------------------------------------------------------------------------------------------
CONDITION: Final = "GroupStarted"

REASON_WAITING: Final = "WaitingForPods"
REASON_STARTED: Final = "AllPodsStarted"
REASON_TIMED_OUT: Final = "TimedOut"
REASON_BYPASSED: Final = "Bypassed"
REASON_GATE_MISSING: Final = "GateMissing"
REASON_CONFIG_MAP_CONFLICT: Final = "ConfigMapConflict"

# --- Pod groups: what we write (groups.md, G2) -----------------------------------------------------------------------
GANG: Final = "jobset-gate.dev/gang"
"""Label on pods held for a group: a hash of design, namespace and name. The only thing they are selected by."""
GANG_GATE: Final = GANG
"""Scheduling gate that holds a pod of a group; the same word as the label that goes with it."""
GANG_OPENED: Final = "jobset-gate.dev/gang-opened"
"""Annotation on a pod, by the patch that removes its gate: `<generation> <RFC 3339 time>`."""
GANG_TAKEN_BACK: Final = "jobset-gate.dev/gang-taken-back"
"""Annotation on a pod that was released from its Job and is to be deleted: `<hash>.<generation>` (G4)."""
GANG_SUSPENDED: Final = "jobset-gate.dev/gang-suspended"
"""Annotation on a Job or JobSet that we have suspended and shall resume: `<hash>.<generation>` (G4)."""
GANG_RECORD: Final = "jobset-gate.dev/gang-record"
"""Annotation on a PodGroup with what was decided of it; label (`true`) on the ConfigMaps that stand in for one."""
GANG_RECORD_VALUE: Final = "true"
GANG_STATE: Final = "jobset-gate.dev/gang-state"
"""Annotation on a PodGroup or ConfigMap: why the group waits, where its status has no field for that (G5)."""
GANG_KEY: Final = "jobset-gate.dev/gang-key"
"""Annotation on such a ConfigMap: `<design>/<namespace>/<name>`, since its name is a hash."""
KEY_RECORD: Final = "record"
"""In the data of such a ConfigMap."""
GANG_CONFIG_MAP_PREFIX: Final = "jobset-gate-gang-"
NATIVE_PREFIX: Final = "jobset-gate-"
"""Of the name of a native PodGroup; the group's hash follows (G6)."""
KOORDINATOR_TIMED_OUT: Final = "gang.scheduling.koordinator.sh/timeout"
"""Annotation (`true`) on the pods of a Koordinator gang that missed its limit, as the seed has it (G4)."""
KUEUE_QUEUE: Final = "kueue.x-k8s.io/queue-name"
"""Label: Kueue suspends and resumes this object, so nobody else may (G4)."""

# --- Pod groups: what the four designs call things (G1) --------------------------------------------------------------
POD_GROUP: Final = "PodGroup"
KEP24_GROUP: Final = "incubator.scheduling.k8s.io"
PLUGINS_GROUP: Final = "scheduling.x-k8s.io"
SIGS_GROUP: Final = "scheduling.sigs.k8s.io"
POD_GROUP_VERSION: Final = "v1alpha1"
"""Of all three."""
KEP24_NAME: Final = "scheduling.k8s.io/group-name"
"""Annotation."""
PLUGINS_NAME: Final = "scheduling.x-k8s.io/pod-group"
"""Label."""
ALIBABA_NAME: Final = "pod-group.scheduling.sigs.k8s.io/name"
"""Label."""
ALIBABA_MINIMUM: Final = "pod-group.scheduling.sigs.k8s.io/min-available"
"""Label."""
KOORDINATOR_LABEL: Final = "pod-group.scheduling.sigs.k8s.io"
"""Label that names a PodGroup."""
KOORDINATOR_PREFIX: Final = "gang.scheduling.koordinator.sh/"
KOORDINATOR_NAME: Final = "gang.scheduling.koordinator.sh/name"
KOORDINATOR_MINIMUM: Final = "gang.scheduling.koordinator.sh/min-available"
KOORDINATOR_WAIT: Final = "gang.scheduling.koordinator.sh/waiting-time"
KOORDINATOR_TOTAL: Final = "gang.scheduling.koordinator.sh/total-number"
KOORDINATOR_MODE: Final = "gang.scheduling.koordinator.sh/mode"
KOORDINATOR_GANGS: Final = "gang.scheduling.koordinator.sh/groups"

# --- Pod groups: why one waits (G3, G4; TimedOut is above) -----------------------------------------------------------
REASON_POD_GROUP_MISSING: Final = "PodGroupMissing"
REASON_GATHERING: Final = "Gathering"
REASON_CANNOT_GATHER: Final = "CannotGather"
REASON_WAITING_FOR_GANG_GROUP: Final = "WaitingForGangGroup"
REASON_WAITING_FOR_CAPACITY: Final = "WaitingForCapacity"
REASON_BEHIND_OTHER: Final = "BehindOther"
REASON_OTHER_GATE: Final = "OtherGate"
REASON_PLACING: Final = "Placing"
REASON_ROLLED_BACK: Final = "RolledBack"
REASON_INVALID_GROUP: Final = "InvalidGroup"
REASON_INVALID_GANG_GROUP: Final = "InvalidGangGroup"
REASON_ROLLBACK_BLOCKED: Final = "RollbackBlocked"
REASON_NATIVE_UNAVAILABLE: Final = "NativeUnavailable"
REASON_UNSCHEDULABLE: Final = "Unschedulable"
"""Of Events: KEP-24's word."""
REASON_OPENED: Final = "Opened"
REASON_SATISFIED: Final = "Satisfied"

# --- The door's own CA, in one Secret (A3) ----------------------------------------------------------------------------
KEY_CA_CERTIFICATES: Final = "ca.crt"
"""All CAs to be trusted, as they stand in caBundle."""
KEY_CA_KEYS: Final = "ca.key"
"""The keys of those that sign: the one in use first, then the one to follow it."""
PREVIOUS_CA_UNTIL: Final = "jobset-gate.dev/previous-ca-until"
"""Annotation: the time until which CAs that sign no more are still trusted, since their certificates may be served."""

# --- The controller's own objects ------------------------------------------------------------------------------------
LEASE: Final = "jobset-gate-controller"


def config_map_name(jobset: str) -> str:
    """The name of the ConfigMap that carries a gang's verdict: the seed's `<jobset>-group-scheduling`."""
    return jobset + CONFIG_MAP_SUFFIX
