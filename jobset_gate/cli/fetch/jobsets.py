"""Gated JobSets with their Jobs, pods and verdict ConfigMap, decoded and joined as the controller does it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import ConfigMapSeen, GangSnapshot, JobSeen, PodSeen, WorkloadSeen
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.source import ObjectNotFound, Permissions, ResourceSource, Unavailable, forbidden_text
from jobset_gate.explain.gang import explain_gang
from jobset_gate.explain.model import FailurePolicies
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, JOBSETS, PODS, Resource
from jobset_gate.objects.unstructured import Json, as_int, as_list, as_map, nested
from jobset_gate.runtime.informer import AnyWatchSource, WatchSource
from jobset_gate.sources import decode

if TYPE_CHECKING:
    import asyncio

    from jobset_gate.explain.model import ControllerStatus, Explanation
    from jobset_gate.kube.client import Client
    from jobset_gate.runtime.store import ObjectChange, ObjectKey

GATED: Final = f"{names.GATED}={names.GATED_VALUE}"
GATES: Final = f"{names.GATE}={names.GATE_VALUE}"
JOBSET_KIND: Final = f"{JOBSETS.kind.lower()}.{JOBSETS.group}"
"""As kubectl prints it before a name."""
_NO_CRD: Final = "the cluster knows no JobSets: their CRD is not installed"
_UNKNOWN_WITHOUT: Final = {
    JOBS: "what has finished is not known",
    PODS: "how many have started is not known",
    CONFIGMAPS: "what was decided is known from the JobSet's condition only",
}

T = TypeVar("T", JobSeen, PodSeen)


@dataclass(frozen=True, slots=True)
class FetchedJobSet:
    """A JobSet that asks for a gate."""

    namespace: str
    name: str
    gang: GangSnapshot
    policies: FailurePolicies | None = None
    pods_forbidden: bool = False

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
    """The JobSets of a namespace (None: of all), the one called `name`, or those with the labels of `selector`.

    Without `pods` nothing is counted. `required`: a caller without the right to JobSets is refused; otherwise that is
    one more missing right.
    """

    def __init__(
        self,
        client: Client,
        namespace: str | None,
        permissions: Permissions,
        *,
        name: str = "",
        selector: str = "",
        pods: bool = True,
        required: bool = True,
        changed: asyncio.Event | None = None,
    ) -> None:
        super().__init__(client, permissions, changed)
        self._namespace, self._name, self._selector = namespace, name, selector
        self._pods_wanted, self._required = pods, required
        self._jobsets: dict[ObjectKey, _JobSetObject] = {}
        self._jobs: dict[ObjectKey, JobSeen] = {}
        self._pods: dict[ObjectKey, PodSeen] = {}
        self._config_maps: dict[ObjectKey, tuple[ConfigMapSeen | None]] = {}
        self._forbidden: set[Resource] = set()

    def sources(self) -> list[AnyWatchSource]:
        self._jobsets, self._jobs, self._pods, self._config_maps = {}, {}, {}, {}
        its = f"metadata.name={self._name}" if self._name else ""
        map_name = f"metadata.name={names.config_map_name(self._name)}" if self._name else ""
        labels = f"{GATED},{names.JS_NAME}={self._name}" if self._name else GATED
        found: list[AnyWatchSource] = [
            WatchSource(JOBSETS, _RawJobSet, _convert, _keep(self._jobsets), self._namespace, self._selector, its),
            WatchSource(
                CONFIGMAPS, wire.ConfigMap, _config_map, _keep(self._config_maps), self._namespace, GATES, map_name
            ),
        ]
        if self._pods_wanted:
            found += (
                WatchSource(JOBS, wire.Job, decode.job, _keep(self._jobs), self._namespace, labels),
                WatchSource(PODS, wire.Pod, decode.pod, _keep(self._pods), self._namespace, labels),
            )
        return found

    def jobsets(self) -> list[FetchedJobSet]:
        """Those that ask for a gate, by namespace and name."""
        jobs, pods = _by_gang(self._jobs.values()), _by_gang(self._pods.values())
        return [
            self._joined(key, it, it.jobset, jobs[key], pods[key])
            for key, it in sorted(self._jobsets.items())
            if it.jobset is not None
        ]

    def one(self) -> FetchedJobSet | None:
        """The one that was selected by name; None if it is not there, or asks for no gate."""
        return next(iter(self.jobsets()), None)

    def on_unavailable(self, it: Unavailable) -> bool:
        resource = it.source.resource
        if resource == JOBSETS:
            return self._without_jobsets(it)
        if it.forbidden:
            self._forbidden.add(resource)
            self.permissions.add_missing(it.verb, resource, self._namespace, _UNKNOWN_WITHOUT[resource])
        return it.forbidden or resource == CONFIGMAPS

    def _without_jobsets(self, it: Unavailable) -> bool:
        if it.forbidden:
            error = CommandError(f"{forbidden_text(it.verb, JOBSETS, self._namespace)} ({it.message})")
        elif it.verb == "get":
            error = ObjectNotFound(f"JobSet {self._name} not found in namespace {self._namespace}")
        else:
            error = CommandError(_NO_CRD)
        if self._required:
            self.failed = error
        else:
            self.permissions.add_sentence(str(error))
            self.permissions.hidden_kinds.add("JobSets")
        return True

    def _joined(
        self, key: ObjectKey, it: _JobSetObject, jobset: WorkloadSeen, jobs: Sequence[JobSeen], pods: Sequence[PodSeen]
    ) -> FetchedJobSet:
        namespace, name = key
        found = self._config_maps.get((namespace, names.config_map_name(name)))
        config_map = found[0] if found else None
        # A ConfigMap without our label is listed by nobody, but the controller's condition says that it is there (A10).
        blocked = jobset.condition is not None and jobset.condition.reason == names.REASON_CONFIG_MAP_CONFLICT
        gang = GangSnapshot(
            workload=jobset,
            jobs=_jobs_of_pods(pods) if JOBS in self._forbidden else tuple(jobs),
            pods=tuple(pods),
            config_map=config_map,
            config_map_conflict=config_map is None and (found is not None or blocked),
        )
        return FetchedJobSet(namespace, name, gang, it.policies, pods_forbidden=PODS in self._forbidden)


async def fetch_jobset(
    client: Client, namespace: str, name: str, permissions: Permissions, *, pods: bool = True
) -> FetchedJobSet | None:
    """One JobSet with what belongs to it; None if it asks for no gate.

    Raises ObjectNotFound, and CommandError where it may not be read.
    """
    source = GangSource(client, namespace, permissions, name=name, pods=pods)
    await source.load()
    return source.one()


# --- Decoding --------------------------------------------------------------------------------------------------------


class _RawJobSet(wire.WireStruct, frozen=True):
    """The JobSet in pieces: its spec is decoded twice, for the rules and as JSON for the user's own policies."""

    metadata: wire.Meta
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")


@dataclass(frozen=True, slots=True)
class _JobSetObject:
    jobset: WorkloadSeen | None
    policies: FailurePolicies | None


def _convert(raw: _RawJobSet) -> _JobSetObject:
    spec = msgspec.json.decode(raw.spec, type=wire.JobSetSpec | None) or wire.JobSetSpec()
    status = msgspec.json.decode(raw.status, type=wire.JobSetStatus | None) or wire.JobSetStatus()
    jobset = decode.jobset(wire.JobSet(metadata=raw.metadata, spec=spec, status=status))
    stored: Json = {
        "metadata": {"labels": {names.KUEUE_QUEUE: raw.metadata.labels.queue if raw.metadata.labels else ""}},
        "spec": msgspec.json.decode(raw.spec),
        "status": msgspec.json.decode(raw.status),
    }
    policies = None if jobset is None else failure_policies(stored, jobset.config.targets)
    return _JobSetObject(jobset, policies)


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


def _by_gang(objects: Iterable[T]) -> defaultdict[ObjectKey, list[T]]:
    found: defaultdict[ObjectKey, list[T]] = defaultdict(list)
    for one in objects:
        found[one.namespace, one.gang].append(one)
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


# --- The user's own policies -----------------------------------------------------------------------------------------

BACKOFF_LIMIT = 6
"""What Kubernetes takes where a Job says nothing."""


def failure_policies(jobset: Json, targets: Sequence[str]) -> FailurePolicies:
    """Of the JobSet as it is stored; `targets` are the replicatedJobs of the gang, empty for all."""
    jobs = [
        it for it in as_list(nested(jobset, "spec", "replicatedJobs")) if not targets or nested(it, "name") in targets
    ]
    specs = [as_map(nested(it, "template", "spec")) for it in jobs]
    failure = nested(jobset, "spec", "failurePolicy")
    return FailurePolicies(
        max_restarts=None if failure is None else as_int(nested(failure, "maxRestarts"), 0),
        rules=tuple(str(nested(it, "action")) for it in as_list(nested(failure, "rules"))),
        counted=as_int(nested(jobset, "status", "restartsCountTowardsMax"), 0),
        backoff_limits=tuple(sorted({as_int(_backoff_limit(it), BACKOFF_LIMIT) for it in specs})),
        restarts_in_place=any(nested(it, "template", "spec", "restartPolicy") != "Never" for it in specs),
        exit_actions=tuple(dict.fromkeys(found for it in specs for found in _exit_action(it))),
        queue=str(nested(jobset, "metadata", "labels", names.KUEUE_QUEUE) or ""),
    )


def _backoff_limit(spec: Json) -> object:
    """Of each index, where there is one for that."""
    each = spec.get("backoffLimitPerIndex")
    return spec.get("backoffLimit") if each is None else each


def _exit_action(spec: Json) -> Iterator[str]:
    """What the first rule of its podFailurePolicy that knows the barrier's exit code does."""
    for rule in as_list(nested(spec, "podFailurePolicy", "rules")):
        codes = nested(rule, "onExitCodes")
        if isinstance(codes, dict) and _is_about(codes):
            yield str(nested(rule, "action"))
            return


def _is_about(codes: dict[str, Any]) -> bool:
    if codes.get("containerName") not in (None, "", names.BARRIER_CONTAINER):
        return False
    return (names.EXIT_TIMED_OUT in as_list(codes.get("values"))) is (codes.get("operator") == "In")
