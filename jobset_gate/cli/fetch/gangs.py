"""Gangs: workloads with their Jobs, pods and verdict ConfigMap, joined by the controller's own cache."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from controllers.barrier.cache import GangCache
from controllers.barrier.workloads import WORKLOADS
from jobset_gate import names
from jobset_gate.barrier import lws_wire, wire
from jobset_gate.barrier.model import ConfigMapSeen, GangKey, GangSnapshot, PodSeen, WorkloadSeen
from jobset_gate.barrier.source import Source, name_and_index
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.source import (
    NamespaceReader,
    ObjectNotFound,
    Permissions,
    ResourceSource,
    Unavailable,
    forbidden_text,
    keep,
)
from jobset_gate.cli.fetch.workloads import RawWorkload, StoredWorkload, decode_job, decode_jobset, jobs_of_pods
from jobset_gate.explain.gang import explain_gang
from jobset_gate.explain.model import ControllerStatus, Explanation, FailurePolicies
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, JOBSETS, LEADER_WORKER_SETS, PODS, STATEFUL_SETS, Resource
from jobset_gate.runtime.informer import AnyWatchSource, WatchSource
from jobset_gate.runtime.store import ObjectChange, ObjectKey
from jobset_gate.sources import decode, lws, startgroup
from jobset_gate.sources.table import JOB, JOBSET, LWS, SOURCES, START_GROUP, config_map_name, gated_selector

GATED: Final = gated_selector(SOURCES)
"""Label selector of the pods of all gangs."""
START_GROUPS: Final = f"{names.START_GROUP},!{names.GATED}"
"""Label selector of the pods of all start groups."""
GATED_PODS: Final = f"{names.GATED}={LWS.gated}"
"""Label selector of the pods of all groups of LeaderWorkerSets."""
GATES: Final = f"{names.GATE}={names.GATE_VALUE}"
_NO_CRD: Final = "the cluster knows no JobSets: their CRD is not installed"
_UNKNOWN_WITHOUT: Final = {
    JOBS: "what has finished is not known",
    PODS: "how many have started is not known",
    CONFIGMAPS: "what was decided is known from the JobSet's condition only",
    STATEFUL_SETS: "worker pods are taken for those of the present leaders, whatever earlier ones there were",
    LEADER_WORKER_SETS: "whether a LeaderWorkerSet has a bypass, an on-timeout or other groups is not known",
}
_UNKNOWN_OF: Final = {
    LWS.name: "what was decided is known from the pods only",
    START_GROUP.name: "the attempt, and what was decided, are known from the pods only",
}
"""The same without the ConfigMaps, of one source."""
_UNSEEN_WITHOUT_PODS: Final = "no start group can be seen, nor any group of a LeaderWorkerSet"
_OF_LWS: Final = (STATEFUL_SETS, LEADER_WORKER_SETS)


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
    ) -> None:
        super().__init__(client, permissions)
        self._namespace, self._of, self._name, self._selector = namespace, of, name, selector
        self._lws = name_and_index(name)[0] if name and LWS in of else ""
        """The one LeaderWorkerSet that is read."""
        self._lws_pods_labels = LWS.pods_labels(name) if name else ""
        self._pods_wanted, self._required = pods, required
        self._forbidden: dict[Resource, str] = {}
        """With the verb."""
        self._forget()

    def _forget(self) -> None:
        self._cache = GangCache(lambda _: None, lambda *_: None)
        self._policies: dict[GangKey, FailurePolicies] = {}
        self._config_maps: dict[ObjectKey, tuple[ConfigMapSeen | None]] = {}
        self._lws_pods: dict[ObjectKey, PodSeen] = {}
        self._leader_worker_sets: dict[ObjectKey, tuple[lws.LeaderWorkerSetSeen | None]] = {}
        """None for one without a config."""
        self._selected: dict[ObjectKey, PodSeen] = {}
        """Pods of start groups that fit the selector, which is enough for all pods of the group."""

    # --- What is read ------------------------------------------------------------------------------------------------

    def sources(self) -> list[AnyWatchSource]:
        self._forget()
        where, cache = self._namespace, self._cache
        templates = [it for it in self._of if not it.gates_pods]
        found = list(map(self._workload_source, templates))
        if START_GROUP in self._of:
            found += self._start_group_sources()
        if LWS in self._of:
            found += self._lws_sources()
        field = _named(self._of[0].config_map_name(self._name) if self._name else "")
        found.append(WatchSource(CONFIGMAPS, wire.ConfigMap, _config_map, self._on_config_map, where, GATES, field))
        if self._pods_wanted and JOBSET in self._of:
            found.append(WatchSource(JOBS, wire.Job, decode.job, cache.on_job, where, self._labels(JOBSET)))
        if self._pods_wanted and templates:
            found.append(WatchSource(PODS, wire.Pod, decode.pod, cache.on_pod, where, self._labels(*templates)))
        return found

    def _workload_source(self, source: Source) -> AnyWatchSource:
        """A Job is selected by our label, and by its name alone where one is given: it may lack the label."""
        where, field = self._namespace, _named(self._name)
        if source is JOBSET:
            handler = self._workload_handler(self._cache.on_workload)
            return WatchSource(JOBSETS, RawWorkload, decode_jobset, handler, where, self._selector, field)
        labels = "" if self._name else ",".join(filter(None, (f"{names.GATED}={source.gated}", self._selector)))
        return WatchSource(
            JOBS, RawWorkload, decode_job, self._workload_handler(self._cache.on_job), where, labels, field
        )

    def _start_group_sources(self) -> list[AnyWatchSource]:
        """With a selector all pods of a group are read if one of them fits, since all of them count."""
        where, every = self._namespace, START_GROUP.pods_selector(self._name) if self._name else START_GROUPS
        found: list[AnyWatchSource] = [
            WatchSource(PODS, wire.MemberPod, startgroup.pod, self._cache.on_pod, where, every)
        ]
        if self._selector:
            labels, kept = f"{every},{self._selector}", keep(self._selected)
            found.append(WatchSource(PODS, wire.MemberPod, startgroup.pod, kept, where, labels))
        return found

    def _lws_sources(self) -> list[AnyWatchSource]:
        its, cache, where = self._lws_pods_labels, self._cache, self._namespace
        gated, made, parent = ",".join(filter(None, (GATED_PODS, its))), its or names.LWS_NAME, self._on_parent
        named, selector, wanted = _named(self._lws), self._selector, lws_wire.LeaderWorkerSet
        return [
            WatchSource(PODS, wire.MemberPod, lws.pod, self._on_lws_pod, where, gated),
            WatchSource(STATEFUL_SETS, lws_wire.WorkerSet, lws.worker_set, cache.on_worker_set, where, made),
            WatchSource(LEADER_WORKER_SETS, wanted, _parent, parent, where, selector, named),
        ]

    async def _load_all(self, sources: Iterable[AnyWatchSource]) -> None:
        """What only groups of LeaderWorkerSets need is not read where there are none."""
        later = [it for it in sources if it.resource in _OF_LWS]
        await super()._load_all(it for it in sources if it.resource not in _OF_LWS)
        if self._lws_pods or self._lws:
            await super()._load_all(later)

    def _labels(self, *of: Source) -> str:
        """Label selector of Jobs and pods."""
        if self._name:
            return of[0].pods_selector(self._name)
        return f"{names.GATED}={of[0].gated}" if len(of) == 1 else GATED

    # --- Handlers, in addition to those of the cache -----------------------------------------------------------------

    def _workload_handler(
        self, handler: Callable[[ObjectChange[Any]], None]
    ) -> Callable[[ObjectChange[StoredWorkload]], None]:
        def handle(change: ObjectChange[StoredWorkload]) -> None:
            old, new = change.old, change.new
            if new is not None:
                self._policies[new.key] = new.policies
            handler(ObjectChange(change.key, None if old is None else old.seen, None if new is None else new.seen))

        return handle

    def _on_config_map(self, change: ObjectChange[tuple[ConfigMapSeen | None]]) -> None:
        """One of a gang's name that is not ours is of interest, too (A10)."""
        keep(self._config_maps)(change)
        self._cache.on_config_map(_unpacked(change))

    def _on_parent(self, change: ObjectChange[tuple[lws.LeaderWorkerSetSeen | None]]) -> None:
        keep(self._leader_worker_sets)(change)
        self._cache.on_leader_worker_set(_unpacked(change))

    def _on_lws_pod(self, change: ObjectChange[PodSeen]) -> None:
        keep(self._lws_pods)(change)
        self._cache.on_pod(change)

    # --- What there is -----------------------------------------------------------------------------------------------

    def gangs(self) -> list[FetchedGang]:
        """Those that ask for a gate: JobSets, Jobs, groups of LeaderWorkerSets, start groups, each by their names."""
        if self._lws_pods:
            self._add_missing_of_lws()
        if STATEFUL_SETS in self._forbidden:
            self._assume_worker_sets()
        fitting = {GangKey(it.namespace, it.gang, it.source) for it in self._selected.values()}
        keys = sorted(filter(lambda key: self._selects(key, fitting), self._cache.keys()), key=_order)
        return [self._fetched(key, seen) for key in keys if (seen := self._cache.peek(key)) is not None]

    def one(self) -> FetchedGang | None:
        """The one that was selected by name; None if it is not there, or asks for no gate."""
        return next(iter(self.gangs()), None)

    def _selects(self, key: GangKey, fitting: Collection[GangKey]) -> bool:
        """Pods of other owners have the same label, and objects that go with a workload are read without selector."""
        if self._name:
            return key.name == self._name
        if self._selector and key.source == LWS.name:
            return (key.namespace, lws.parent_name(key)) in self._leader_worker_sets
        if self._selector and key.source == START_GROUP.name:
            return key in fitting
        return True

    def _fetched(self, key: GangKey, seen: GangSnapshot) -> FetchedGang:
        condition, config_map = seen.workload.condition, seen.config_map
        foreign = self._config_maps.get((key.namespace, config_map_name(key))) == (None,)
        # A ConfigMap without our label is listed by nobody, but the controller's condition says that it is there (A10).
        blocked = condition is not None and condition.reason == names.REASON_CONFIG_MAP_CONFLICT
        jobs = seen.jobs
        if JOBS in self._forbidden and key.source == JOBSET.name:
            jobs = jobs_of_pods(seen.pods)
        gang = msgspec.structs.replace(
            seen, jobs=jobs, remembered=None, config_map_conflict=foreign or (config_map is None and blocked)
        )
        forbidden = PODS in self._forbidden and not SOURCES[key.source].gates_pods
        return FetchedGang(gang, self._policies.get(key), pods_forbidden=forbidden)

    # --- Without rights ----------------------------------------------------------------------------------------------

    def on_unavailable(self, it: Unavailable) -> bool:
        resource = it.source.resource
        if it.source.wire is RawWorkload:
            return self._without_workloads(it, JOBSET if resource == JOBSETS else JOB)
        if it.source.wire is wire.MemberPod:
            of = LWS if it.source.convert is lws.pod else START_GROUP
            return it.forbidden and self._without_workloads(it, of)
        if it.forbidden:
            self._forbidden[resource] = it.verb
        if it.forbidden and resource not in _OF_LWS:
            unknown = _UNKNOWN_OF.get(self._of[0].name if len(self._of) == 1 else "", _UNKNOWN_WITHOUT[resource])
            self.permissions.add_missing(it.verb, resource, self._namespace, unknown)
        return it.forbidden or resource == CONFIGMAPS or resource in _OF_LWS

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

    def _add_missing_of_lws(self) -> None:
        """Names what is not known of the groups that there are."""
        for resource in _OF_LWS:
            if verb := self._forbidden.get(resource):
                self.permissions.add_missing(verb, resource, self._namespace, _UNKNOWN_WITHOUT[resource])

    def _assume_worker_sets(self) -> None:
        """Takes worker pods for those of the present leaders."""
        leaders = {(it.namespace, it.name): it.uid for it in self._lws_pods.values()}
        for it in self._lws_pods.values():
            if it.name != it.gang and it.job_uid:
                key = (it.namespace, it.gang)
                leader = leaders.get(key, "")
                seen = lws.WorkerSetSeen(namespace=it.namespace, name=it.gang, uid=it.job_uid, leader_uid=leader)
                self._cache.on_worker_set(ObjectChange(key, None, seen))


async def fetch_gang(
    reader: NamespaceReader,
    source: Source,
    name: str,
    *,
    pods: bool = True,
    known: Mapping[Resource, Sequence[Any]] | None = None,
) -> FetchedGang | None:
    """One workload with what belongs to it; None if it asks for no gate. `known`: as for `load`.

    Raises ObjectNotFound, and CommandError where it may not be read.
    """
    found = GangSource(reader.client, reader.namespace, reader.permissions, of=(source,), name=name, pods=pods)
    await found.load(known)
    gang = found.one()
    if gang is None and source.gates_pods:
        lacks = f"{source.slot_words[0]} pod" if source.slot_words else "pod any more"
        raise ObjectNotFound(f"{source.kind} {source.shown_name(name)} in namespace {reader.namespace} has no {lacks}")
    return gang


def _order(key: GangKey) -> tuple[int, str, str, int]:
    """By source, namespace and name; groups of a LeaderWorkerSet by their number."""
    source = [*SOURCES].index(key.source)
    if key.source == LWS.name:
        return source, key.namespace, lws.parent_name(key), lws.group_index(key)
    return source, key.namespace, key.name, 0


def _named(name: str) -> str:
    """Field selector of the object of that name; "" for all."""
    return f"metadata.name={name}" if name else ""


def _unpacked(change: ObjectChange[tuple[Any]]) -> ObjectChange[Any]:
    return ObjectChange(change.key, change.old and change.old[0], change.new and change.new[0])


def _config_map(raw: wire.ConfigMap) -> tuple[ConfigMapSeen | None]:
    return (decode.config_map(raw),)


def _parent(raw: lws_wire.LeaderWorkerSet) -> tuple[lws.LeaderWorkerSetSeen | None]:
    found = lws.leader_worker_set(raw)
    return (found if found is not None and found.has_config else None,)
