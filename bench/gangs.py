"""Gangs as a cluster holds them: the JobSet or Job after admission, its Jobs, and their pods at each step.

Nothing is made up that the project can make itself: the barrier is put in by the shipped rules, Jobs and pods are
rendered as JobSet and the Job controller do it, statuses are those of the played kubelets with the
rest of what a kubelet writes, managedFields included.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

import msgspec

from bench import managed_fields, workers
from jobset_gate import names
from jobset_gate.barrier.model import GangKey
from jobset_gate.barrier.source import name_and_index
from jobset_gate.injection import inject
from jobset_gate.kube.resources import JOBS, JOBSETS, Resource
from jobset_gate.settings import Barrier, Settings
from jobset_gate.sources import startgroup
from jobset_gate.sources.table import JOB, JOBSET, LWS, POD_SOURCES, START_GROUP
from jobset_gate_demo.fake import job_controller, jobset_controller, jobset_crd, manifests
from jobset_gate_demo.fake.apiserver import rules
from jobset_gate_demo.fake.apiserver.kinds import default_custom
from jobset_gate_demo.fake.apiserver.responses import copy
from jobset_gate_demo.fake.kubelet.pod_status import ContainerRecord, PodRecord, running, terminated, waiting
from jobset_gate_demo.fake.kubelet.pod_status import render as render_status
from jobset_gate_demo.fake.objects import FakeObject, Json, stamp

TARGET = "workers"
CONFIG = {names.TIMEOUT_FIELD: 3600}
STREAM = "http://jobset-gate-stream.jobset-gate-system.svc:8082"
PODS_PER_NODE = 8


class PodStep(StrEnum):
    """How far a pod has come."""

    UNSCHEDULED = "unscheduled"
    PULLING = "pulling"
    """On its node; the barrier's image is being pulled."""
    HELD = "held"
    """Its barrier runs: it has started (A4) and waits."""
    RUNNING = "running"
    """Released: its main container runs."""


@dataclass(frozen=True, slots=True)
class GangPlan:
    """A gang of `jobs` Jobs with `pods` pods each, in one replicatedJob; of the other sources one Job.

    Where pods are gated one by one they have no Job: it only shapes them. `single` makes the names of those gangs.
    """

    name: str
    jobs: int
    pods: int
    namespace: str = "default"
    lean: bool = False
    """Pods of the seed's own example, managedFields without fields: 6 to 8 KiB each, else 13 to 15 KiB."""
    token: str = ""
    """What its pods show at the gate stream; "" if they have none."""
    source: str = JOBSET.name

    @property
    def size(self) -> int:
        """Pods of the whole gang."""
        return self.jobs * self.pods

    @property
    def key(self) -> GangKey:
        return GangKey(self.namespace, self.name, self.source)

    @property
    def resource(self) -> Resource:
        """Of its workload."""
        return JOBSETS if self.source == JOBSET.name else JOBS


def split(name: str, size: int, namespace: str = "default", *, lean: bool = False, most: int = 100) -> GangPlan:
    """A gang of `size` pods, or a few more, in equal Jobs of at most `most`."""
    jobs = max(1, -(-size // most))
    return GangPlan(name, jobs, -(-size // jobs), namespace, lean)


def single(source: str, name: str, pods: int, namespace: str = "default") -> GangPlan:
    """A gang of this source whose pods are all of one Job, of one StatefulSet, or of one leader."""
    if source == START_GROUP.name:
        name = startgroup.gang_name(name, _uid_of(name))
    elif source == LWS.name:
        name = f"{name}-0"
    return GangPlan(name, 1, pods, namespace, lean=True, source=source)


def lws_objects(plan: GangPlan, leader_uid: str) -> tuple[Json, Json]:
    """The LeaderWorkerSet of a group and the StatefulSet of its workers, without what the API server adds."""
    name, index = name_and_index(plan.name)
    template = _workers(plan)["template"]["spec"]["template"]
    template["spec"]["restartPolicy"] = "Always"
    notes = {names.CONFIG: msgspec.json.encode(CONFIG).decode()}
    parent = {
        "apiVersion": LWS.api_version,
        "kind": LWS.kind,
        "metadata": {"name": name, "namespace": plan.namespace, "annotations": notes, "uid": _uid_of(f"{name}.lws")},
        "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": plan.size, "workerTemplate": template}},
    }
    leader = {"apiVersion": "v1", "kind": "Pod", "name": plan.name, "uid": leader_uid, "controller": True}
    labels = {names.LWS_NAME: name, names.LWS_GROUP_INDEX: index}
    meta = {"name": plan.name, "namespace": plan.namespace, "labels": labels, "ownerReferences": [leader]}
    workers = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": meta | {"uid": _uid_of(plan.name)},
        "spec": {},
    }
    return parent, workers


def workload(plan: GangPlan) -> Json:
    """The JobSet or the Job; where pods are gated one by one a Job without a gang."""
    if plan.source in POD_SOURCES:
        return job_as_sent(plan) | {"metadata": {"name": plan.name, "namespace": plan.namespace, "labels": {}}}
    return job(plan) if plan.source == JOB.name else jobset(plan)


def job(plan: GangPlan) -> Json:
    """The Job as it is stored: admitted by jobset-gate, without what the API server adds."""
    return _gated(job_as_sent(plan), plan)


def job_as_sent(plan: GangPlan) -> Json:
    """The Job of the source `job`, as a user writes it."""
    assert plan.jobs == 1, plan
    spec = _workers(plan)["template"]["spec"] | {"completionMode": "Indexed"}
    spec["template"]["spec"]["restartPolicy"] = "OnFailure"  # as JobSet defaults it
    config = {names.CONFIG: msgspec.json.encode(CONFIG).decode()}
    metadata = {"name": plan.name, "namespace": plan.namespace, "annotations": config}
    return {"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": metadata, "spec": spec}


def jobset(plan: GangPlan) -> Json:
    """The JobSet as it is stored: admitted by jobset-gate and by JobSet itself, without what the API server adds."""
    user = manifests.jobset(plan.name, plan.namespace, replicated_jobs=[_workers(plan)], config=CONFIG)
    stored = _gated(user, plan)
    (crd,) = jobset_crd.manifest()["spec"]["versions"]
    default_custom(stored, crd["schema"]["openAPIV3Schema"])
    return stored


def _workers(plan: GangPlan) -> Json:
    return (workers.example if plan.lean else workers.trainer)(TARGET, replicas=plan.jobs, parallelism=plan.pods)


def _gated(user: Json, plan: GangPlan) -> Json:
    settings = Settings(barrier=Barrier(stream_url=STREAM)) if plan.token else Settings()
    gated: Json = copy(inject.injected(user, None, settings=settings, token=plan.token).document)
    return gated


def jobs(stored: Json) -> list[Json]:
    """The Jobs of a JobSet that has a uid, as they are sent to the API server; of a Job itself."""
    if stored["kind"] == JOB.kind:
        return [stored]
    seen = msgspec.convert({key: stored.get(key) or {} for key in ("metadata", "spec", "status")}, FakeObject)
    (wanted,) = stored["spec"]["replicatedJobs"]
    return [jobset_controller.render(seen, wanted, index) for index in range(wanted["replicas"])]


def job_as_stored(job: Json, rng: random.Random, now: float) -> Json:
    """What an API server makes of a new Job."""
    made: Json = copy(job)
    made["metadata"] |= {"uid": new_uid(rng), "creationTimestamp": stamp(now), "generation": 1}
    rules.default_job(made)
    rules.prepare_job(made)
    return made


class GangPods:
    """The pods of one stored Job. Costly parts are made once for all of them."""

    def __init__(self, job: Json, now: float, *, lean: bool = False, source: str = JOBSET.name) -> None:
        self.job: str = job["metadata"]["name"]
        self._source = source
        self._is_gated_alone = source in POD_SOURCES
        self._lean = lean
        self._job = msgspec.convert({key: job.get(key) or {} for key in ("metadata", "spec", "status")}, FakeObject)
        self._now = now
        self._number = int(job["metadata"]["labels"].get(names.JS_JOB_GLOBAL_INDEX, 0))
        self._prototypes: dict[PodStep, Json] = {}
        self._member: Json | None = None
        """A pod that is gated alone."""

    def fresh(self, index: int) -> Json:
        """A pod to be sent to an API server, on a node already; as it is admitted, if it is gated alone."""
        pod: Json = copy(self._render(index))
        if self._is_gated_alone:
            self._distinguish(pod["metadata"], index)
        pod["metadata"]["name"] = self.name(index)
        del pod["metadata"]["generateName"]
        pod["spec"]["nodeName"] = self._node(index)
        return pod

    def as_sent(self, index: int) -> Json:
        """A pod that is gated alone, before its admission."""
        pod = job_controller.render(self._job, index)
        meta = pod["metadata"] | {"namespace": self._job.metadata.namespace} | self._alone(index)
        policy = "Always" if self._source == LWS.name else "Never"
        del pod["spec"]["hostname"]  # of a Job, and none with a dot is valid
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod["spec"] | {"restartPolicy": policy}}

    def name(self, index: int) -> str:
        """Of the pod with that index, with five characters at its end as if they were drawn, unless LWS names it."""
        if self._source == LWS.name:
            return f"{self.job}-{index}" if index else self.job
        end = f"{self._number * 7919 + index * 104729:05x}"[-5:]
        return f"{self._job.metadata.name}-{index}-{end}"

    def status(self, index: int, step: PodStep, uid: str) -> Json:
        """What its kubelet, or the scheduler, says of it."""
        if step is PodStep.UNSCHEDULED:
            return _unscheduled(self._now)
        init, main = _STATES[step](self._now)
        spec = self._render(0)["spec"] if self._is_gated_alone else self._job.spec["template"]["spec"]
        book = PodRecord(
            restart_policy="OnFailure",
            init=[ContainerRecord(one["name"], one["image"], init) for one in spec["initContainers"]],
            mains=[ContainerRecord(one["name"], one["image"], main) for one in spec["containers"]],
            started=self._now,
        )
        node = int(self._node(index).rpartition("-")[2])
        return _complete(render_status(book, self._now), uid, f"10.128.{node // 250}.{node % 250}")

    def stored(self, index: int, step: PodStep, uid: str) -> Json:
        """The whole pod as an API server keeps it at that step; resourceVersion is the server's to set."""
        prototype = self._prototypes.get(step)
        if prototype is None:
            prototype = self._prototypes[step] = self._prototype(step)
        pod: Json = copy(prototype)
        meta, name = pod["metadata"], self.name(index)
        meta |= {"name": name, "generateName": name[:-5], "uid": uid}
        meta["managedFields"][-1]["time"] = stamp(time.time())
        if self._is_gated_alone:
            self._distinguish(meta, index)
        for kind in ("labels", "annotations"):
            meta[kind][names.JOB_COMPLETION_INDEX] = str(index)
        pod["spec"]["hostname"] = f"{self._job.metadata.name}-{index}"
        if step is not PodStep.UNSCHEDULED:
            pod["spec"]["nodeName"] = self._node(index)
        pod["status"] = {**self.status(index, step, uid), "qosClass": prototype["status"]["qosClass"]}
        return pod

    def _prototype(self, step: PodStep) -> Json:
        pod: Json = copy(self._render(0))
        pod["metadata"] |= {"creationTimestamp": stamp(self._now), "generation": 1}
        if not self._is_gated_alone:
            pod["metadata"]["finalizers"] = [names.JOB_TRACKING_FINALIZER]
        pod["spec"] |= workers.service_account(pod["spec"])
        rules.default_pod(pod)
        _add_defaults(pod["spec"])
        now = stamp(self._now)
        whole = {**pod, "status": {**self.status(0, step, "uid"), "qosClass": "Burstable"}}
        whole["metadata"]["managedFields"] = [{"manager": "kubelet", "operation": "Update", "time": now}]
        if not self._lean:
            whole["metadata"]["managedFields"] = [
                managed_fields.entry("kube-controller-manager", whole, "metadata", "spec", time=now),
                managed_fields.entry("kubelet", whole, "status", subresource="status", time=now),
            ]
        return whole

    def _distinguish(self, meta: Json, index: int) -> None:
        """What one pod that is gated alone has of its own."""
        its = self._alone(index)
        meta["annotations"][names.TOKEN] = f"{index:032x}"
        meta["labels"] |= its["labels"]
        meta["ownerReferences"] = its["ownerReferences"]

    def _render(self, index: int) -> Json:
        """As its controller makes it and the webhook lets it in."""
        if not self._is_gated_alone:
            return job_controller.render(self._job, index)
        if self._member is None:
            self._member = inject.injected(self.as_sent(0), None, settings=Settings(), token="0" * 32).document
        return self._member

    def _alone(self, index: int) -> Json:
        """Labels, annotations and owner of a pod that is gated alone, as its controller writes them."""
        notes = {names.CONFIG: msgspec.json.encode(CONFIG).decode()}
        size = str(self._job.spec["parallelism"])
        if self._source == START_GROUP.name:
            name, uid = startgroup.group_and_owner(self.job)
            labels, notes[names.START_SIZE] = {names.START_GROUP: name}, size
        else:
            parent, group = name_and_index(self.job)
            name, uid = (self.job, _uid_of(self.job)) if index else (parent, _uid_of(parent))
            labels = {names.LWS_NAME: parent, names.LWS_GROUP_INDEX: group, names.LWS_WORKER_INDEX: str(index)}
            labels[names.GATED], notes[names.LWS_SIZE] = LWS.gated, size
        by = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": uid, "controller": True}
        return {"labels": labels, "annotations": notes, "ownerReferences": [by]}

    def _node(self, index: int) -> str:
        place = self._number * int(self._job.spec["parallelism"]) + index
        return f"gke-cluster-accelerators-{place // PODS_PER_NODE}"


def new_uid(rng: random.Random) -> str:
    """A random UUID as API servers give them out."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _uid_of(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


# --- Details ---------------------------------------------------------------------------------------------------------


_STATES: dict[PodStep, Callable[[float], tuple[Json, Json]]] = {
    PodStep.PULLING: lambda _: (waiting("PodInitializing"), waiting("PodInitializing")),
    PodStep.HELD: lambda now: (running(now), waiting("PodInitializing")),
    PodStep.RUNNING: lambda now: (terminated(0, now + 3, running(now)), running(now + 4)),
}


def _add_defaults(spec: Json) -> None:
    """What an API server adds to the spec of a pod, a watch carries and nobody here reads."""
    spec |= {"dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30, "securityContext": {}} | spec
    spec |= {"enableServiceLinks": True, "priority": 0, "preemptionPolicy": "PreemptLowerPriority"} | spec
    for container in (*spec["initContainers"], *spec["containers"]):
        more = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
        container.update(more | {"imagePullPolicy": "IfNotPresent", "resources": {}} | container)
    for volume in spec.get("volumes") or ():
        for kind in ("configMap", "downwardAPI", "projected"):
            if kind in volume:
                volume[kind] = {"defaultMode": 420} | volume[kind]


def _complete(status: Json, uid: str, host_ip: str) -> Json:
    """With what a kubelet writes, a watch carries and nobody here reads: addresses, IDs, conditions."""
    one, two, three = sha256(uid.encode()).digest()[:3]
    pod_ip = f"10.{one}.{two}.{three}"
    for each in (*status["initContainerStatuses"], *status["containerStatuses"]):
        ran = "waiting" not in each["state"]
        each["imageID"] = f"sha256:{sha256(each['image'].encode()).hexdigest()}" if ran else ""
        if ran:
            each["containerID"] = f"containerd://{sha256((uid + each['name']).encode()).hexdigest()}"
        if "terminated" in each["state"]:
            each["state"]["terminated"]["containerID"] = each["containerID"]
    ready, scheduled = status["conditions"]
    passed = all("terminated" in each["state"] for each in status["initContainerStatuses"])
    lacking = {
        "reason": "ContainersNotInitialized",
        "message": f"containers with incomplete status: [{names.BARRIER_CONTAINER}]",
    }
    same = {"status": "True", "lastTransitionTime": scheduled["lastTransitionTime"]}
    status["conditions"] = [
        {"type": "PodReadyToStartContainers"} | same,
        {"type": "Initialized"} | same | ({} if passed else {"status": "False", **lacking}),
        ready,
        ready | {"type": "ContainersReady"},
        scheduled,
    ]
    return status | {"hostIP": host_ip, "hostIPs": [{"ip": host_ip}], "podIP": pod_ip, "podIPs": [{"ip": pod_ip}]}


def _unscheduled(now: float) -> Json:
    message = (
        "0/1250 nodes are available: 3 node(s) had untolerated taint(s), 1247 Insufficient nvidia.com/gpu. no new "
        "claims to deallocate, preemption: 0/1250 nodes are available: 1250 No victims found for incoming pod."
    )
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [{**condition, "lastProbeTime": None, "lastTransitionTime": stamp(now)}]}
