"""Gangs: workloads with their Jobs, pods and verdict ConfigMap, decoded and joined as the controller does it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from controllers.barrier.workloads import WORKLOADS
from jobset_gate import names
from jobset_gate.barrier import lws_wire, wire
from jobset_gate.barrier.model import ConfigMapSeen, GangKey, GangSnapshot, JobSeen, PodSeen, WorkloadSeen
from jobset_gate.barrier.source import name_and_index
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.lws import LwsObjects
from jobset_gate.cli.fetch.policies import job_policies, jobset_policies
from jobset_gate.cli.fetch.source import (
    ObjectNotFound,
    Permissions,
    ResourceSource,
    Unavailable,
    by_gang,
    forbidden_text,
    keep,
)
from jobset_gate.explain.gang import explain_gang
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, JOBSETS, PODS, Resource
from jobset_gate.objects.unstructured import Json
from jobset_gate.runtime.informer import AnyWatchSource, WatchSource
from jobset_gate.sources import decode, lws, startgroup
from jobset_gate.sources.table import JOB, JOBSET, LWS, SOURCES, START_GROUP, config_map_name, gated_selector

if TYPE_CHECKING:
    import asyncio

    from jobset_gate.barrier.source import Source
    from jobset_gate.explain.model import ControllerStatus, Explanation, FailurePolicies
    from jobset_gate.kube.client import Client
    from jobset_gate.runtime.store import ObjectKey

GATED: Final = gated_selector(SOURCES)
"""Label selector of the pods of all gangs."""
START_GROUPS: Final = f"{names.START_GROUP},!{names.GATED}"
"""Label selector of the pods of all start groups."""
GATES: Final = f"{names.GATE}={names.GATE_VALUE}"
_NO_CRD: Final = "the cluster knows no JobSets: their CRD is not installed"
_UNKNOWN_WITHOUT: Final = {
    JOBS: "what has finished is not known",
    PODS: "how many have started is not known",
    CONFIGMAPS: "what was decided is known from the JobSet's condition only",
}
_UNKNOWN_OF: Final = {
    LWS.name: "what was decided is known from the pods only",
    START_GROUP.name: "the attempt, and what was decided, are known from the pods only",
}
"""The same without the ConfigMaps, of one source."""
_UNSEEN_WITHOUT_PODS: Final = "no start group can be seen, nor any group of a LeaderWorkerSet"
_OF_LWS: Final = (lws_wire.WorkerSet, lws_wire.LeaderWorkerSet)


def kubectl_name(workload: WorkloadSeen) -> str:
    """`jobset.jobset.x-k8s.io/train`, as kubectl prints it; `startgroup/ring` and `lws/vllm/2` are names of ours."""
    source = workload.source
    group = "" if source.gates_pods else f".{WORKLOADS[source.name].group}"
    return f"{source.resource}{group}/{workload.shown_name}"


def argument_of(workload: WorkloadSeen) -> str:
    """How messages name a gang for our other commands: `train`, `job/train`."""
    its = workload.source
    return workload.name if its is JOBSET else f"{its.resource}/{workload.shown_name}"


@dataclass(frozen=True, slots=True)
class FetchedGang:
    """A workload that asks for a gate, with what belongs to it."""

    gang: GangSnapshot
    policies: FailurePolicies | None = None
    pods_forbidden: bool = False

    @property
    def namespace(self) -> str:
        return self.gang.workload.namespace

    @property
    def name(self) -> str:
        """Of the workload, as people call it."""
        return self.gang.workload.shown_name

    def explained(
        self, controller: ControllerStatus | None = None, unknown: Sequence[str] = (), pod: str = ""
    ) -> Explanation:
        """Where it stands now. `unknown`: rights that are missing; `pod`: the one that was named."""
        return explain_gang(
            self.gang,
            time.time(),
            controller=controller,
            policy=self.policies,
            unknown=unknown,
            pods_forbidden=self.pods_forbidden,
            pod=pod,
        )


class GangSource(ResourceSource):
    """The gangs of a namespace (None: of all), the one called `name`, or those whose workload fits `selector`.

    Without `pods` nothing is counted. `required`: a caller without the right to the workloads is refused; otherwise
    that is one more missing right. `of`: their sources, one of them where there is a name.
    """

    def __init__(
        self,
        client: Client,
        namespace: str | None,
        permissions: Permissions,
        *,
        of: Sequence[Source] = (JOBSET,),
        name: str = "",
        selector: str = "",
        pods: bool = True,
        required: bool = True,
        changed: asyncio.Event | None = None,
    ) -> None:
        super().__init__(client, permissions, changed)
        self._namespace, self._of, self._name, self._selector = namespace, of, name, selector
        self._pods_wanted, self._required = pods, required
        self._workloads: dict[str, dict[ObjectKey, _Workload]] = {}
        self._jobs: dict[ObjectKey, JobSeen] = {}
        self._pods: dict[ObjectKey, PodSeen] = {}
        self._members: dict[ObjectKey, PodSeen] = {}
        """Pods of start groups."""
        self._lws = self._lws_objects()
        self._selected: dict[ObjectKey, object] = {}
        """Those that fit the selector."""
        self._config_maps: dict[ObjectKey, tuple[ConfigMapSeen | None]] = {}
        self._forbidden: set[Resource] = set()

    def sources(self) -> list[AnyWatchSource]:
        self._workloads = {source.name: {} for source in self._of}
        self._jobs, self._pods, self._members, self._selected, self._config_maps = {}, {}, {}, {}, {}
        self._lws = self._lws_objects()
        templates = [it for it in self._of if not it.gates_pods]
        found = list(map(self._workload_source, templates))
        if START_GROUP in self._of:
            found += self._member_sources()
        if LWS in self._of:
            found += self._lws.sources()
        map_name = f"metadata.name={self._of[0].config_map_name(self._name)}" if self._name else ""
        found.append(
            WatchSource(
                CONFIGMAPS, wire.ConfigMap, _config_map, keep(self._config_maps), self._namespace, GATES, map_name
            )
        )
        if self._pods_wanted and JOBSET in self._of:
            its = self._labels(JOBSET)
            found.append(WatchSource(JOBS, wire.Job, decode.job, keep(self._jobs), self._namespace, its))
        if self._pods_wanted and templates:
            its = self._labels(*templates)
            found.append(WatchSource(PODS, wire.Pod, decode.pod, keep(self._pods), self._namespace, its))
        return found

    async def _load_all(self, sources: Iterable[AnyWatchSource]) -> None:
        """What only groups of LeaderWorkerSets need is not read where there are none."""
        later = [it for it in sources if it.wire in _OF_LWS]
        await super()._load_all(it for it in sources if it.wire not in _OF_LWS)
        if self._lws.is_wanted:
            await super()._load_all(later)

    def _lws_objects(self) -> LwsObjects:
        """To be read: of one group, or of all."""
        if not self._name:
            return LwsObjects(self._namespace, selector=self._selector)
        return LwsObjects(self._namespace, LWS.pods_labels(self._name), name_and_index(self._name)[0])

    def gangs(self) -> list[FetchedGang]:
        """Those that ask for a gate: JobSets, Jobs, groups of LeaderWorkerSets, start groups, each by their names."""
        jobs, pods = by_gang(self._jobs.values()), by_gang(self._pods.values())
        found = [
            self._joined(it, it.seen, jobs[it.seen.key], pods[it.seen.key])
            for source in self._of
            for _, it in sorted(self._workloads[source.name].items())
            if it.seen is not None
        ]
        if self._lws.pods:
            self._lws.add_missing(self.permissions)
        return found + [FetchedGang(it) for it in self._lws.gangs(self._config_map)] + self._start_groups()

    def one(self) -> FetchedGang | None:
        """The one that was selected by name; None if it is not there, or asks for no gate."""
        return next(iter(self.gangs()), None)

    def on_unavailable(self, it: Unavailable) -> bool:
        resource = it.source.resource
        if it.source.wire in (_RawJobSet, _RawJob):
            return self._without_workloads(it, JOBSET if resource == JOBSETS else JOB)
        if it.source.wire in _OF_LWS:
            self._lws.on_unavailable(it)
            return True
        if it.source.wire in (wire.MemberPod, wire.AnyObject):
            of = LWS if it.source.convert is lws.pod else START_GROUP
            return it.forbidden and self._without_workloads(it, of)
        if it.forbidden:
            self._forbidden.add(resource)
            unknown = _UNKNOWN_OF.get(self._of[0].name if len(self._of) == 1 else "", _UNKNOWN_WITHOUT[resource])
            self.permissions.add_missing(it.verb, resource, self._namespace, unknown)
        return it.forbidden or resource == CONFIGMAPS

    def _workload_source(self, source: Source) -> AnyWatchSource:
        """A Job is selected by our label, and by its name alone where one is given: it may lack the label."""
        handler, field = keep(self._workloads[source.name]), f"metadata.name={self._name}" if self._name else ""
        if source is JOBSET:
            return WatchSource(JOBSETS, _RawJobSet, _jobset, handler, self._namespace, self._selector, field)
        labels = "" if self._name else ",".join(filter(None, (f"{names.GATED}={source.gated}", self._selector)))
        return WatchSource(JOBS, _RawJob, _job, handler, self._namespace, labels, field)

    def _member_sources(self) -> list[AnyWatchSource]:
        """Pods of start groups; with a selector, all of a group if one of them fits, since all of them count."""
        every = START_GROUP.pods_selector(self._name) if self._name else START_GROUPS
        found: list[AnyWatchSource] = [
            WatchSource(PODS, wire.MemberPod, startgroup.pod, keep(self._members), self._namespace, every)
        ]
        if self._selector:
            labels, handler = f"{every},{self._selector}", keep(self._selected)
            found.append(WatchSource(PODS, wire.AnyObject, lambda it: it, handler, self._namespace, labels))
        return found

    def _start_groups(self) -> list[FetchedGang]:
        """Gathered from their pods and their ConfigMap, as the controller does it."""
        found = []
        for key, pods in sorted(by_gang(self._members.values()).items()):
            if self._name and key.name != self._name:
                continue
            if self._selector and not any((it.namespace, it.name) in self._selected for it in pods):
                continue
            config_map, conflict = self._config_map(key)
            own = config_map if config_map is not None and config_map.workload_uid == pods[0].workload_uid else None
            kept = own.membership if own is not None else None
            gathered = startgroup.gather(key, pods, kept, own)
            if gathered is not None:
                workload, job, counted = gathered
                gang = GangSnapshot(workload=workload, jobs=(job,), pods=counted, membership=kept)
                gang = msgspec.structs.replace(gang, config_map=config_map, config_map_conflict=conflict)
                found.append(FetchedGang(gang))
        return found

    def _config_map(self, key: GangKey) -> tuple[ConfigMapSeen | None, bool]:
        """The gang's ConfigMap, and whether one of its name is not ours."""
        found = self._config_maps.get((key.namespace, config_map_name(key)))
        config_map = found[0] if found else None
        return config_map, found is not None and config_map is None

    def _labels(self, *of: Source) -> str:
        """Label selector of Jobs and pods."""
        if self._name:
            return of[0].pods_selector(self._name)
        return f"{names.GATED}={of[0].gated}" if len(of) == 1 else GATED

    def _without_workloads(self, it: Unavailable, source: Source) -> bool:
        resource = PODS if source.gates_pods else WORKLOADS[source.name]
        if it.forbidden:
            error = CommandError(f"{forbidden_text(it.verb, resource, self._namespace)} ({it.message})")
        elif it.verb == "get":
            error = ObjectNotFound(f"{source.kind} {self._name} not found in namespace {self._namespace}")
        else:
            error = CommandError(_NO_CRD)
        if self._required:
            self.failed = error
        else:
            unseen = f"{forbidden_text(it.verb, resource, self._namespace)}: {_UNSEEN_WITHOUT_PODS}"
            self.permissions.add_sentence(unseen if source.gates_pods else str(error))
            self.permissions.hidden_kinds.add(f"{source.kind}s")
        return True

    def _joined(
        self, it: _Workload, seen: WorkloadSeen, jobs: Sequence[JobSeen], pods: Sequence[PodSeen]
    ) -> FetchedGang:
        config_map, conflict = self._config_map(seen.key)
        # A ConfigMap without our label is listed by nobody, but the controller's condition says that it is there (A10).
        blocked = seen.condition is not None and seen.condition.reason == names.REASON_CONFIG_MAP_CONFLICT
        if it.job is not None:
            jobs = (it.job,)
        elif JOBS in self._forbidden:
            jobs = _jobs_of_pods(pods)
        gang = GangSnapshot(
            workload=seen,
            jobs=tuple(jobs),
            pods=tuple(pods),
            config_map=config_map,
            config_map_conflict=conflict or (config_map is None and blocked),
        )
        return FetchedGang(gang, it.policies, pods_forbidden=PODS in self._forbidden)


async def fetch_gang(
    client: Client,
    namespace: str,
    source: Source,
    name: str,
    permissions: Permissions,
    *,
    pods: bool = True,
    known: Mapping[Resource, Sequence[Any]] | None = None,
) -> FetchedGang | None:
    """One workload with what belongs to it; None if it asks for no gate. `known`: as for `load`.

    Raises ObjectNotFound, and CommandError where it may not be read.
    """
    found = GangSource(client, namespace, permissions, of=(source,), name=name, pods=pods)
    await found.load(known)
    gang = found.one()
    if gang is None and source.gates_pods:
        lacks = f"{source.slot_words[0]} pod" if source.slot_words else "pod any more"
        raise ObjectNotFound(f"{source.kind} {source.shown_name(name)} in namespace {namespace} has no {lacks}")
    return gang


# --- Decoding --------------------------------------------------------------------------------------------------------


class _RawJobSet(wire.WireStruct, frozen=True):
    """The JobSet in pieces: its spec is decoded twice, for the rules and as JSON for the user's own policies."""

    metadata: wire.Meta
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")


class _RawJob(_RawJobSet, frozen=True):
    """A Job that may be a gang itself, in the same pieces."""


@dataclass(frozen=True, slots=True)
class _Workload:
    seen: WorkloadSeen | None
    policies: FailurePolicies | None = None
    job: JobSeen | None = None
    """The Job that is a gang itself."""


def _jobset(raw: _RawJobSet) -> _Workload:
    spec = msgspec.json.decode(raw.spec, type=wire.JobSetSpec | None) or wire.JobSetSpec()
    status = msgspec.json.decode(raw.status, type=wire.JobSetStatus | None) or wire.JobSetStatus()
    jobset = decode.jobset(wire.JobSet(metadata=raw.metadata, spec=spec, status=status))
    if jobset is None:
        return _Workload(None)
    return _Workload(jobset, jobset_policies(_stored(raw), jobset.config.targets))


def _job(raw: _RawJob) -> _Workload:
    """One with the annotation and without our label, too: the webhook was away when it was created (K6)."""
    spec = msgspec.json.decode(raw.spec, type=wire.JobSpec | None) or wire.JobSpec()
    status = msgspec.json.decode(raw.status, type=wire.JobStatus | None) or wire.JobStatus()
    meta, labels = raw.metadata, raw.metadata.labels or wire.NO_LABELS
    if not labels.gated:
        meta = msgspec.structs.replace(meta, labels=msgspec.structs.replace(labels, gated=JOB.gated))
    job = decode.job(wire.Job(metadata=meta, spec=spec, status=status))
    return _Workload(None) if job.workload is None else _Workload(job.workload, job_policies(_stored(raw)), job)


def _stored(raw: _RawJobSet) -> Json:
    """What the user's policies are read from."""
    return {
        "metadata": {"labels": {names.KUEUE_QUEUE: raw.metadata.labels.queue if raw.metadata.labels else ""}},
        "spec": msgspec.json.decode(raw.spec),
        "status": msgspec.json.decode(raw.status),
    }


def _config_map(raw: wire.ConfigMap) -> tuple[ConfigMapSeen | None]:
    """In a tuple, since one of the gang's name that is not ours is of interest, too (A10)."""
    return (decode.config_map(raw),)


def _jobs_of_pods(pods: Sequence[PodSeen]) -> tuple[JobSeen, ...]:
    """Without the right to list Jobs: those that these pods belong to, neither suspended nor finished."""
    return tuple(
        {
            pod.job_uid: JobSeen(
                namespace=pod.namespace,
                name=f"{pod.gang}-{pod.replicated_job}-{pod.job_index}",
                uid=pod.job_uid,
                source=pod.source,
                gang=pod.gang,
                workload_uid=pod.workload_uid,
                replicated_job=pod.replicated_job,
                job_index=pod.job_index,
                attempt=pod.attempt,
                suspended=False,
                deleting=False,
                complete=False,
                succeeded=0,
                completed=frozenset(),
            )
            for pod in pods
            if pod.job_uid
        }.values()
    )
