"""Workloads with their Jobs, pods and verdict ConfigMap, decoded and joined as the controller does it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from controllers.barrier.workloads import WORKLOADS
from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import ConfigMapSeen, GangKey, GangSnapshot, JobSeen, PodSeen, WorkloadSeen
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.policies import job_policies, jobset_policies
from jobset_gate.cli.fetch.source import ObjectNotFound, Permissions, ResourceSource, Unavailable, forbidden_text
from jobset_gate.explain.gang import explain_gang
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, JOBSETS, PODS, Resource
from jobset_gate.objects.unstructured import Json
from jobset_gate.runtime.informer import AnyWatchSource, WatchSource
from jobset_gate.sources import decode
from jobset_gate.sources.table import JOB, JOBSET, SOURCES, gated_selector

if TYPE_CHECKING:
    import asyncio

    from jobset_gate.barrier.source import Source
    from jobset_gate.explain.model import ControllerStatus, Explanation, FailurePolicies
    from jobset_gate.kube.client import Client
    from jobset_gate.runtime.store import ObjectChange, ObjectKey

GATED: Final = gated_selector(SOURCES)
"""Label selector of the pods of all gangs."""
GATES: Final = f"{names.GATE}={names.GATE_VALUE}"
_NO_CRD: Final = "the cluster knows no JobSets: their CRD is not installed"
_UNKNOWN_WITHOUT: Final = {
    JOBS: "what has finished is not known",
    PODS: "how many have started is not known",
    CONFIGMAPS: "what was decided is known from the JobSet's condition only",
}

T = TypeVar("T", JobSeen, PodSeen)


def kubectl_name(source: Source, name: str) -> str:
    """`jobset.jobset.x-k8s.io/train`, as kubectl prints it."""
    return f"{source.resource}.{WORKLOADS[source.name].group}/{name}"


def argument_of(source: Source, name: str) -> str:
    """How messages name a gang for our other commands: `train`, `job/train`."""
    return name if source is JOBSET else f"{source.resource}/{name}"


@dataclass(frozen=True, slots=True)
class FetchedGang:
    """A workload that asks for a gate, with what belongs to it."""

    gang: GangSnapshot
    policies: FailurePolicies | None = None
    pods_forbidden: bool = False

    @property
    def namespace(self) -> str:
        """Of the workload."""
        return self.gang.workload.namespace

    @property
    def name(self) -> str:
        """Of the workload."""
        return self.gang.workload.name

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
        self._config_maps: dict[ObjectKey, tuple[ConfigMapSeen | None]] = {}
        self._forbidden: set[Resource] = set()

    def sources(self) -> list[AnyWatchSource]:
        self._workloads = {source.name: {} for source in self._of}
        self._jobs, self._pods, self._config_maps = {}, {}, {}
        found = list(map(self._workload_source, self._of))
        map_name = f"metadata.name={self._of[0].config_map_name(self._name)}" if self._name else ""
        found.append(
            WatchSource(
                CONFIGMAPS, wire.ConfigMap, _config_map, _keep(self._config_maps), self._namespace, GATES, map_name
            )
        )
        if self._pods_wanted and JOBSET in self._of:
            its = self._labels(JOBSET)
            found.append(WatchSource(JOBS, wire.Job, decode.job, _keep(self._jobs), self._namespace, its))
        if self._pods_wanted:
            its = self._labels(*self._of)
            found.append(WatchSource(PODS, wire.Pod, decode.pod, _keep(self._pods), self._namespace, its))
        return found

    def gangs(self) -> list[FetchedGang]:
        """Those that ask for a gate: the JobSets before the Jobs, each by namespace and name."""
        jobs, pods = _by_gang(self._jobs.values()), _by_gang(self._pods.values())
        return [
            self._joined(it, it.seen, jobs[it.seen.key], pods[it.seen.key])
            for source in self._of
            for _, it in sorted(self._workloads[source.name].items())
            if it.seen is not None
        ]

    def one(self) -> FetchedGang | None:
        """The one that was selected by name; None if it is not there, or asks for no gate."""
        return next(iter(self.gangs()), None)

    def on_unavailable(self, it: Unavailable) -> bool:
        resource = it.source.resource
        if it.source.wire in (_RawJobSet, _RawJob):
            return self._without_workloads(it, JOBSET if resource == JOBSETS else JOB)
        if it.forbidden:
            self._forbidden.add(resource)
            self.permissions.add_missing(it.verb, resource, self._namespace, _UNKNOWN_WITHOUT[resource])
        return it.forbidden or resource == CONFIGMAPS

    def _workload_source(self, source: Source) -> AnyWatchSource:
        """A Job is selected by our label, and by its name alone where one is given: it may lack the label."""
        handler, field = _keep(self._workloads[source.name]), f"metadata.name={self._name}" if self._name else ""
        if source is JOBSET:
            return WatchSource(JOBSETS, _RawJobSet, _jobset, handler, self._namespace, self._selector, field)
        labels = "" if self._name else ",".join(filter(None, (f"{names.GATED}={source.gated}", self._selector)))
        return WatchSource(JOBS, _RawJob, _job, handler, self._namespace, labels, field)

    def _labels(self, *of: Source) -> str:
        """Label selector of Jobs and pods."""
        if self._name:
            return of[0].pods_selector(self._name)
        return f"{names.GATED}={of[0].gated}" if len(of) == 1 else GATED

    def _without_workloads(self, it: Unavailable, source: Source) -> bool:
        resource = WORKLOADS[source.name]
        if it.forbidden:
            error = CommandError(f"{forbidden_text(it.verb, resource, self._namespace)} ({it.message})")
        elif it.verb == "get":
            error = ObjectNotFound(f"{source.kind} {self._name} not found in namespace {self._namespace}")
        else:
            error = CommandError(_NO_CRD)
        if self._required:
            self.failed = error
        else:
            self.permissions.add_sentence(str(error))
            self.permissions.hidden_kinds.add(f"{source.kind}s")
        return True

    def _joined(
        self, it: _Workload, seen: WorkloadSeen, jobs: Sequence[JobSeen], pods: Sequence[PodSeen]
    ) -> FetchedGang:
        found = self._config_maps.get((seen.namespace, seen.source.config_map_name(seen.name)))
        config_map = found[0] if found else None
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
            config_map_conflict=config_map is None and (found is not None or blocked),
        )
        return FetchedGang(gang, it.policies, pods_forbidden=PODS in self._forbidden)


async def fetch_gang(
    client: Client, namespace: str, source: Source, name: str, permissions: Permissions, *, pods: bool = True
) -> FetchedGang | None:
    """One workload with what belongs to it; None if it asks for no gate.

    Raises ObjectNotFound, and CommandError where it may not be read.
    """
    found = GangSource(client, namespace, permissions, of=(source,), name=name, pods=pods)
    await found.load()
    return found.one()


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


def _keep(cache: dict[ObjectKey, Any]) -> Callable[[ObjectChange[Any]], None]:
    def handle(change: ObjectChange[Any]) -> None:
        if change.new is None:
            cache.pop(change.key, None)
        else:
            cache[change.key] = change.new

    return handle


def _by_gang(objects: Iterable[T]) -> defaultdict[GangKey, list[T]]:
    found: defaultdict[GangKey, list[T]] = defaultdict(list)
    for one in objects:
        found[GangKey(one.namespace, one.gang, one.source)].append(one)
    return found


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
