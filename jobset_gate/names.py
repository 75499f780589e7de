"""Every label, annotation, key, container, file and reason that jobset-gate writes into a cluster or looks for."""

from typing import Final

DOMAIN: Final = "jobset-gate.dev"
PROGRAM: Final = "jobset-gate"
FIELD_MANAGER: Final = "jobset-gate"

# --- On a JobSet (A2) -------------------------------------------------------------------------------------------
CONFIG_FIELD: Final = "groupSchedulingConfig"
"""Field of a JobSet's spec: what waits for what, and for how long. The controller adds it to JobSet's CRD."""
TIMEOUT_FIELD: Final = "timeoutAfterSeconds"
TARGETS_FIELD: Final = "targetReplicatedJobs"

CONFIG: Final = "jobset-gate.dev/group-scheduling-config"
"""Annotation on a JobSet: its groupSchedulingConfig as JSON, for clusters whose CRD may not be changed. Written by its
author at creation; where the author uses the field, by the webhook, so that a controller finds it whatever becomes of
the CRD. Read by webhook, controller and command line; fixed at creation."""
BYPASS: Final = "jobset-gate.dev/bypass"
"""Annotation on a JobSet: `true` opens the gate now and in every generation to come. Written by people at any time,
and by `bypass` and `release`. Read by the controller."""
ON_TIMEOUT: Final = "jobset-gate.dev/on-timeout"
"""Annotation on a JobSet: `Fail` (the default) or `Release`, what the timeout leads to. Written by its author, who may
change it until the verdict. Read by webhook and controller."""
PREFETCH_IMAGES: Final = "jobset-gate.dev/prefetch-images"
"""Annotation on a JobSet: `true` makes each main image run an init container that does nothing, so that a pod counts
as started only when its images are on its node. Written by its author. Read by the webhook at creation; fixed from
then on."""
BARRIER_IMAGE: Final = "jobset-gate.dev/barrier-image"
"""Annotation on a JobSet: another image for the barrier than the operator's. Written by its author. Read by the
webhook at creation; fixed from then on."""
OUR_JOBSET_ANNOTATIONS: Final = (CONFIG, BYPASS, ON_TIMEOUT, PREFETCH_IMAGES, BARRIER_IMAGE)

ON_TIMEOUT_FAIL: Final = "Fail"
ON_TIMEOUT_RELEASE: Final = "Release"

# --- In the templates that the webhook renders (A3, A5) ----------------------------------------------------------
GATED: Final = "jobset-gate.dev/gated"
"""Label on gated Jobs and pods: `true` on those of a JobSet, `job` where a Job is a gang itself, `lws` on pods of a
LeaderWorkerSet. Written by the webhook into the templates of the targets. Read by the controller and the command line:
the only thing that they select them by."""
GATED_VALUE: Final = "true"
GATED_JOB: Final = "job"
GATED_LWS: Final = "lws"
EPOCH: Final = "jobset-gate.dev/epoch"
"""Annotation on gated pods: how often the JobSet had been suspended when they were made. Written by the webhook into
the templates, 0 at creation and one more with each suspension. Read by barrier and controller: a verdict of an older
epoch is not theirs."""
START_GROUP: Final = "jobset-gate.dev/start-group"
"""Label on pods of any controller: the name of the start group, a DNS label. Written by their author into the pod
template. Read by webhook, controller and command line, which select such pods by it; on the group's ConfigMap, where
the controller writes it, by people who wait for the start."""
START_SIZE: Final = "jobset-gate.dev/start-size"
"""Annotation on pods of a start group: how many of them wait for each other, 1 to 10000. Written by their author. Read
by webhook and controller."""
TOKEN: Final = "jobset-gate.dev/token"  # noqa: S105 - a key, no secret
"""Annotation on pods that the webhook gates one by one: the secret with which the pod asks the gate stream. Written by
the webhook. Read by the pod's barrier, through its environment, and by the controller."""
BARRIER_CONTAINER: Final = "group-scheduling-init"
"""Init container: the barrier, last of all, so that everything else is done when a pod counts as started."""
VOLUME: Final = "group-scheduling"
"""Volume: the two files of the barrier, the ConfigMap's verdict and the pod's own annotation."""
MOUNT_PATH: Final = "/mnt/group-scheduling"
"""Path: where the barrier finds them."""
VERDICT_FILE: Final = "verdict"
"""File: the key `verdict` of the gang's ConfigMap, as the kubelet projects it."""
ANNOTATION_FILE: Final = "annotation"
"""File: the pod's annotation `jobset-gate.dev/verdict`, as the kubelet projects it."""

ENV_UID: Final = "JOBSET_GATE_UID"
"""Environment: UID of the JobSet, the first part of the generation."""
ENV_ATTEMPT: Final = "JOBSET_GATE_ATTEMPT"
"""Environment: its restart attempt, the second part."""
ENV_EPOCH: Final = "JOBSET_GATE_EPOCH"
"""Environment: its epoch, the third part."""
ENV_LIMIT: Final = "JOBSET_GATE_LIMIT"
"""Environment: seconds after which a barrier that gets no verdict exits; empty: never."""
ENV_STREAM: Final = "JOBSET_GATE_STREAM"
"""Environment: the gang's place on the gate stream, `<base URL>/v1/gangs/<namespace>/<jobset>/<token>`; absent: no
stream."""
ENV_TOKEN: Final = "JOBSET_GATE_TOKEN"  # noqa: S105 - a name, no secret
"""Environment: the pod's own token, the last part of the stream's URL where pods are gated one by one."""
ENV_POD: Final = "JOBSET_GATE_POD"
"""Environment: UID of the pod, by which it announces itself on the gate stream."""

STATE_VOLUME: Final = "group-scheduling-state"
"""Volume: where the barrier of a pod that is gated alone keeps its release, so that init containers that run again
pass without anybody."""
STATE_PATH: Final = "/mnt/group-scheduling-state"
"""Path: where that volume is mounted; the file in it has the name and the form of the verdict's."""

PREFETCH_CONTAINER: Final = "group-scheduling-prefetch"
"""Init container: puts a program that does nothing into the volume; the containers that run it in the main images add
`-1`, `-2` and so on."""
PREFETCH_VOLUME: Final = "group-scheduling-prefetch"
"""Volume: holds that program."""
PREFETCH_PATH: Final = "/mnt/group-scheduling-prefetch"
"""Path: where it lies."""
PREFETCH_PROGRAM: Final = "/mnt/group-scheduling-prefetch/true"
"""File: the program. A busybox of that name does what it says."""

EXIT_TIMED_OUT: Final = 124
"""The barrier's exit code on a timeout verdict and at its own limit (A7), the one of timeout(1)."""

# --- On pods, written after the decision (A6) ---------------------------------------------------------------------
VERDICT: Final = "jobset-gate.dev/verdict"
"""Annotation on gated pods: the verdict of their generation, as in the ConfigMap. Written by the controller after the
decision, on pods that still wait. Read by the barrier, as a file."""
NUDGE: Final = "jobset-gate.dev/nudge"
"""Annotation on gated pods: a number that changes. Written by the controller on a straggler whose verdict annotation
is already there, so that its kubelet looks at it again. Read by nobody."""

# --- The gang's ConfigMap (A6, A7, A10) ----------------------------------------------------------------------------
CONFIG_MAP_SUFFIX: Final = "-group-scheduling"
"""Suffix: of the name of a gang's ConfigMap, behind that of its JobSet."""
JOB_CONFIG_MAP_SUFFIX: Final = ".job.group-scheduling"
"""Suffix: of the name of a gang's ConfigMap, behind that of its Job: a JobSet may have the same name."""
START_CONFIG_MAP_SUFFIX: Final = ".start.group-scheduling"
"""Suffix: of the name of a start group's ConfigMap, behind the group's name and the UID of the pods' owner."""
LWS_CONFIG_MAP_SUFFIX: Final = ".lws.group-scheduling"
"""Suffix: of the name of the ConfigMap of one group of a LeaderWorkerSet, behind that of its leader pod."""
GATE: Final = "jobset-gate.dev/gate"
"""Label on the ConfigMaps of gangs: `true`. Written by the controller. Read by controller and command line, which list
them by it."""
GATE_VALUE: Final = "true"
JOBSET_UID: Final = "jobset-gate.dev/jobset-uid"
"""Annotation on the ConfigMaps of gangs: the UID of the JobSet that each belongs to. Written by the controller. Read
by the controller: a ConfigMap without it is another owner's and is never changed."""
KEY_VERDICT: Final = "verdict"
"""Key: the verdict. First line `<release or timeout> <JobSet UID> <restart attempt> <epoch> <cause>`, then a message
for people of at most 1 KiB. The write of this key is the decision."""
KEY_WAITING_SINCE: Final = "waiting-since"
"""Key: the gang's clock, `<JobSet UID> <restart attempt> <epoch> <RFC 3339 time>`: when the first pod of that
generation started."""
KEY_ATTEMPT: Final = "attempt"
"""Key: of a start group, the number of its attempt, which nothing else records."""
KEY_MEMBERS: Final = "members"
"""Key: of a start group, the UIDs of its live pods, one per line, when clock or verdict of the attempt was written."""
GROUP_STARTED: Final = "jobset-gate.dev/group-started"
"""Annotation on a start group's ConfigMap: the status of the condition GroupStarted, `True` or `False`, since there is
no object with a status. Written by the controller. Read by people and the command line."""
GANG_STATE: Final = "jobset-gate.dev/gang-state"
"""Annotation on a start group's ConfigMap: `<reason>: <message>` of that condition. Written by the controller. Read by
people and the command line."""
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
"""Label on ConfigMaps, webhook configurations, CRDs and native PodGroups that we make: `jobset-gate`. Written by
controller and webhook. Read by the controller where it has to know whether a CRD is ours."""

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
JS_JOB_INDEX: Final = "jobset.sigs.k8s.io/job-index"
JS_JOB_GLOBAL_INDEX: Final = "jobset.sigs.k8s.io/job-global-index"
JS_RESTART_ATTEMPT: Final = "jobset.sigs.k8s.io/restart-attempt"
JS_COORDINATOR: Final = "jobset.sigs.k8s.io/coordinator"

# --- The LeaderWorkerSet API's own names ----------------------------------------------------------------------------
LWS_API_VERSION: Final = "leaderworkerset.x-k8s.io/v1"
LWS_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
LWS_GROUP_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"
LWS_WORKER_INDEX: Final = "leaderworkerset.sigs.k8s.io/worker-index"
LWS_SIZE: Final = "leaderworkerset.sigs.k8s.io/size"
LWS_RECREATE_AFTER_START: Final = "leaderworkerset.sigs.k8s.io/experimental-recreate-group-after-start"

# --- The Job API's own names -----------------------------------------------------------------------------------------
JOB_NAME: Final = "batch.kubernetes.io/job-name"
JOB_CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
JOB_TRACKING_FINALIZER: Final = "batch.kubernetes.io/job-tracking"

JOB_CONTROLLER_UID_OF_OLD: Final = "controller-uid"
"""The same, as it was called before; pods carry both."""
JOB_CONTROLLER: Final = "kubernetes.io/job-controller"
"""The value of spec.managedBy that means the same as none at all."""
FAIL_JOB: Final = "FailJob"
"""The action of a podFailurePolicy's rule that ends the whole Job."""
DISRUPTION_TARGET: Final = "DisruptionTarget"
"""The condition of a pod that is taken away through no fault of its own."""

# --- Words people see (A9) -------------------------------------------------------------------------------------------
CONDITION: Final = "GroupStarted"
"""Condition of a JobSet: True once its gang was released."""

REASON_WAITING: Final = "WaitingForPods"
"""Of the condition GroupStarted: the gate is closed. The message says how many have started, who is missing and in
whose words why, what happens at the timeout, and what to run next."""
REASON_STARTED: Final = "AllPodsStarted"
"""Of the condition GroupStarted and a Normal Event: the gate was opened, since all pods of the gang have started."""
REASON_TIMED_OUT: Final = "TimedOut"
"""Of the condition GroupStarted and a Warning Event: the time was up, and the message names who was missing; the gate
has opened only where on-timeout is Release. Of a pod group, its condition and a Warning Event: the limit after the
opening has passed with too few bound."""
REASON_INDEX_FAILED: Final = "IndexFailed"
"""Of the condition GroupStarted and a Warning Event: an index of a Job has failed for good before the start, so the
gang can never be complete. Decided at once, as at a timeout: the gate has opened only where on-timeout is Release."""
REASON_BYPASSED: Final = "Bypassed"
"""Of the condition GroupStarted and a Normal Event: the gate was opened by the annotation jobset-gate.dev/bypass."""
REASON_GATE_MISSING: Final = "GateMissing"
"""Of the condition GroupStarted and a Warning Event: the pods of a JobSet with a config have no barrier, or the config
is not valid; nothing holds them. Of a start group also the cause of a verdict: a live pod has no barrier, so the gate
was opened at once."""
REASON_CONFIG_MAP_CONFLICT: Final = "ConfigMapConflict"
"""Of the condition GroupStarted and a Warning Event: a ConfigMap of the gang's name exists that is not ours, so that
no verdict can be written. A gang that is decided has the Event alone."""
REASON_PODS_DIFFER: Final = "PodsDiffer"
"""Of a Warning Event on the owner of a start group's pods: they differ in size, timeout or annotations; the most
patient values count, and the message names the pods that have others."""
REASON_TWO_OWNERS: Final = "TwoOwners"
"""Of a Warning Event on two owners: a start group of one name waits under each of them, and neither can complete the
other."""
REASON_RELEASED_BY_USER: Final = "ReleasedByUser"
"""Of a Warning Event on the JobSet: a user has opened the gate of one generation. Written by the command
line, which refuses to act where it may not write it."""
REASON_BYPASSED_BY_USER: Final = "BypassedByUser"
"""Of a Warning Event on the JobSet: a user has opened the gate for good. Written by the command line, as before."""

# --- Pod groups: what we write (groups.md, G2) -----------------------------------------------------------------------
POD_GROUP_LABEL: Final = "jobset-gate.dev/gang"
"""Label on pods held for a group, and on native PodGroups: a hash of design, namespace and name. Written by the pod
webhook. Read by the controller: the only thing that members are selected by."""
POD_GROUP_GATE: Final = POD_GROUP_LABEL
"""Scheduling gate on pods of a group; the same word as the label that goes with it. Written by the pod webhook at
creation, removed by the controller when the group is opened. Read by kube-scheduler, which leaves the pod alone."""
POD_GROUP_OPENED: Final = "jobset-gate.dev/gang-opened"
"""Annotation on pods: `<generation> <RFC 3339 time>`. Written by the controller in the patch that removes the gate.
Read by its successor, to finish what was begun."""
POD_GROUP_TAKEN_BACK: Final = "jobset-gate.dev/gang-taken-back"
"""Annotation on pods: `<hash>.<generation>`. Written by the controller on a pod that it released from its Job and is
about to delete. Read by its successor."""
POD_GROUP_SUSPENDED: Final = "jobset-gate.dev/gang-suspended"
"""Annotation on Jobs and JobSets: `<hash>.<generation>` of the group for which they were suspended. The object has
a label of the same name and value, since annotations cannot be selected. Written by the controller, which resumes
them. Read by the controller and by `groups ungate`."""
POD_GROUP_RECORD: Final = "jobset-gate.dev/gang-record"
"""Annotation on PodGroups: what was decided of the group, as JSON. As a label of the value `true` on the ConfigMaps
that stand in for a PodGroup. Written by the controller, by compare-and-swap: this write is the decision. Read by the
controller."""
POD_GROUP_RECORD_VALUE: Final = "true"
POD_GROUP_STATE: Final = GANG_STATE
"""Annotation on PodGroups and those ConfigMaps: `<phase>: <reason>: <message>`, where a status has no field for it.
Written by the controller. Read by people and the command line."""
POD_GROUP_KEY: Final = "jobset-gate.dev/gang-key"
"""Annotation on those ConfigMaps: `<design>/<namespace>/<name>` of the group, since their name is a hash. Written by
the controller. Read by the controller."""
KEY_RECORD: Final = "record"
"""Key: what was decided of the group, as JSON; of ConfigMaps that stand in for a PodGroup."""
POD_GROUP_CONFIG_MAP_PREFIX: Final = "jobset-gate-gang-"
"""Prefix: of the name of those ConfigMaps; the group's hash follows."""
POD_WEBHOOK: Final = "zz-jobset-gate-pods"
"""The webhook configuration for pods. It goes last among the mutating ones, in the order of their names, and is the
first thing that an uninstallation takes away."""
BARRIER_POD_WEBHOOK: Final = "zz-jobset-gate-barrier-pods"
"""The webhook configuration for pods into which the barrier is put one by one. Named as the one above."""
NATIVE_PREFIX: Final = "jobset-gate-"
"""Of the name of a native PodGroup; the group's hash follows (G6)."""
NATIVE_PROBE: Final = "jobset-gate.dev/canary"
"""Label on two pods and their PodGroup: the name of the proof. Written by `doctor --native`, by which a person
proves that the scheduler places native gangs. Read by that command."""
NATIVE_GROUP: Final = "scheduling.k8s.io"
"""The API group of the scheduler's own PodGroups."""
NATIVE_GENERATION: Final = "jobset-gate.dev/gang-generation"
"""Annotation on native PodGroups: the generation that each was made for, since its spec cannot be changed. Written by
the controller. Read by the controller."""
KOORDINATOR_TIMED_OUT: Final = "gang.scheduling.koordinator.sh/timeout"
"""Annotation on pods of a Koordinator gang: `true` where it missed its limit, as that design has it. Written by the
controller. Read by the controller: the next try begins when all of them are gone."""
POD_GROUP_CRD_REVISION: Final = "jobset-gate.dev/crd-revision"
"""Annotation on the CRDs that we have made: which of their forms it is, a number that rises. Written by the
controller. Read by the controller: an older one undoes nothing."""
KUEUE_QUEUE: Final = "kueue.x-k8s.io/queue-name"
"""Label on Jobs and JobSets: Kueue suspends and resumes this object, so nobody else may. Written by people, for Kueue.
Read by controller and command line."""

# --- Pod groups: what Kubernetes calls things ------------------------------------------------------------------------
DEFAULT_SCHEDULER: Final = "default-scheduler"
MIRROR_POD: Final = "kubernetes.io/config.mirror"
"""Annotation on mirror pods: such a pod stands for one which a kubelet has from a file of its own. Written by
kubelets. Read by the API server, by our match conditions: such a pod is never held."""

# --- Pod groups: what the four designs call things (G1) --------------------------------------------------------------
POD_GROUP: Final = "PodGroup"
KEP24_GROUP: Final = "incubator.scheduling.k8s.io"
PLUGINS_GROUP: Final = "scheduling.x-k8s.io"
SIGS_GROUP: Final = "scheduling.sigs.k8s.io"
POD_GROUP_VERSION: Final = "v1alpha1"
"""Of all three."""
KEP24_NAME: Final = "scheduling.k8s.io/group-name"
"""Annotation on pods: the name of their PodGroup."""
PLUGINS_NAME: Final = "scheduling.x-k8s.io/pod-group"
"""Label on pods: the name of their PodGroup."""
ALIBABA_NAME: Final = "pod-group.scheduling.sigs.k8s.io/name"
"""Label on pods: the name of their group."""
ALIBABA_MINIMUM: Final = "pod-group.scheduling.sigs.k8s.io/min-available"
"""Label on pods: how many of them have to be placed together."""
KOORDINATOR_LABEL: Final = "pod-group.scheduling.sigs.k8s.io"
"""Label on pods: the name of their PodGroup."""
KOORDINATOR_PREFIX: Final = "gang.scheduling.koordinator.sh/"
KOORDINATOR_NAME: Final = "gang.scheduling.koordinator.sh/name"
"""Annotation on pods: the name of their gang."""
KOORDINATOR_MINIMUM: Final = "gang.scheduling.koordinator.sh/min-available"
"""Annotation on pods: how many of them have to be placed together."""
KOORDINATOR_WAIT: Final = "gang.scheduling.koordinator.sh/waiting-time"
"""Annotation on pods: the limit from the opening to the minimum bound, as 600s or 10m."""
KOORDINATOR_TOTAL: Final = "gang.scheduling.koordinator.sh/total-number"
"""Annotation on pods and PodGroups: how many members the gang has in all; not below the minimum."""
KOORDINATOR_MODE: Final = "gang.scheduling.koordinator.sh/mode"
"""Annotation on pods and PodGroups: Strict (the default) or NonStrict, whether a gang that missed its limit is taken
back."""
KOORDINATOR_GANGS: Final = "gang.scheduling.koordinator.sh/groups"
"""Annotation on pods and PodGroups: a JSON list of `namespace/name`, gangs that are opened only together, itself among
them."""

# --- Pod groups: why one waits (G3, G4; TimedOut is above) -----------------------------------------------------------
REASON_POD_GROUP_MISSING: Final = "PodGroupMissing"
"""Of a pod group and a Warning Event: its pods name a PodGroup that does not exist, or whose kind is not installed."""
REASON_GATHERING: Final = "Gathering"
"""Of a pod group, and after five minutes a Normal Event: fewer pods than the minimum exist."""
REASON_CANNOT_GATHER: Final = "CannotGather"
"""Of a pod group, of the condition GroupStarted of a start group, and a Warning Event: its owners never make that many
pods while none of them runs."""
REASON_WAITING_FOR_GANG_GROUP: Final = "WaitingForGangGroup"
"""Of a pod group and a Normal Event: another gang of its GangGroup is not gathered yet."""
REASON_WAITING_FOR_CAPACITY: Final = "WaitingForCapacity"
"""Of a pod group and a Normal Event: it has no proven room; the message says what is needed and what is free."""
REASON_BEHIND_OTHER: Final = "BehindOther"
"""Of a pod group and a Normal Event: it is not its turn; the message names the group before it."""
REASON_OTHER_GATE: Final = "OtherGate"
"""Of a pod group and a Normal Event: a pod is also held by a scheduling gate of another controller."""
REASON_PLACING: Final = "Placing"
"""Of a pod group: opened, and its minimum not bound yet; with the scheduler's words."""
REASON_ROLLED_BACK: Final = "RolledBack"
"""Of a pod group and a Warning Event: it missed its limit and was taken back; the message says when it may be opened
again."""
REASON_INVALID_GROUP: Final = "InvalidGroup"
"""Of a pod group and a Warning Event: a bad value, or members that contradict each other; the message says which."""
REASON_INVALID_GANG_GROUP: Final = "InvalidGangGroup"
"""Of a pod group and a Warning Event: its list of gangs does not contain it, or is not the same on all of them."""
REASON_ROLLBACK_BLOCKED: Final = "RollbackBlocked"
"""Of a pod group and a Warning Event: it missed its limit, and some of its pods cannot be taken back; the message
names them."""
REASON_NATIVE_UNAVAILABLE: Final = "NativeUnavailable"
"""Of a pod group and a Warning Event: it is handed over to a scheduler that places gangs, but the API server drops the
field."""
REASON_NOT_RECORDED: Final = "NotRecorded"
"""Of a pod group and a Warning Event: the decision to open it cannot be written; with the API server's words."""
REASON_UNSCHEDULABLE: Final = "Unschedulable"
"""Of a Warning Event on pods and PodGroups of KEP-24, in its words: too few members, no group named, or a total
that does not fit."""
REASON_DISRUPTED: Final = "TerminationByJobsetGate"
"""Of the condition DisruptionTarget: the pod is deleted to take its group back."""
REASON_OPENED: Final = "Opened"
"""Of a Normal Event: it was decided that the group goes; its gates are being removed."""
REASON_SATISFIED: Final = "Satisfied"
"""Of a pod group and a Normal Event: its minimum was bound once; later members pass at once."""
REASON_GATHERED: Final = "Gathered"
"""Of a pod group: it is complete and fits, and is opened as soon as a controller leads."""
REASON_RUNNING: Final = "Running"
"""Of a pod group: its minimum runs or has succeeded."""
REASON_FINISHED: Final = "Finished"
"""Of a pod group: all its pods have succeeded, its minimum at least."""
REASON_FAILED: Final = "Failed"
"""Of a pod group: pods have failed, and fewer than its minimum run or have succeeded."""
REASON_BARRIER_TOO_SHORT: Final = "BarrierTooShort"
"""Of a Warning Event on the group: the start barrier of its pods gives up while the group may still be placed."""
REASON_UNGATED: Final = "Ungated"
"""Of a Warning Event on pods: one names a group and was bound without being held for it."""
REASON_MEMBERSHIP_FIXED: Final = "MembershipFixed"
"""Of a Warning Event on pods: one names another group by now than the one it is held for, which is not followed."""
REASON_NOT_HEEDED: Final = "NotHeeded"
"""Of a Warning Event on the group: annotations of Koordinator's on it or its pods that jobset-gate does not know."""
REASON_STATUS_NOT_OURS: Final = "StatusManagedByOther"
"""Of a Normal Event on a PodGroup: another controller writes its status, so we only read it."""
POD_GROUP_CONDITION: Final = "GangSatisfied"
"""Condition of a PodGroup: True once its minimum was bound in this generation."""

# --- The webhook's own CA, in one Secret (A3) ------------------------------------------------------------------------
KEY_CA_CERTIFICATES: Final = "ca.crt"
"""Key: all CAs to be trusted, as they stand in caBundle."""
KEY_CA_KEYS: Final = "ca.key"
"""Key: the keys of those that sign: the one in use first, then the one to follow it."""
PREVIOUS_CA_UNTIL: Final = "jobset-gate.dev/previous-ca-until"
"""Annotation on the Secret of the CA: the time until which CAs that sign no more are still trusted, since their
certificates may be served. Written by the webhook. Read by the webhook."""

# --- The controller's own objects ------------------------------------------------------------------------------------
LEASE: Final = "jobset-gate-controller"
"""Lease: who holds it leads, and is the only one that writes."""


def config_map_name(jobset: str) -> str:
    """The name of the ConfigMap that carries a gang's verdict: the seed's `<jobset>-group-scheduling`."""
    return jobset + CONFIG_MAP_SUFFIX
