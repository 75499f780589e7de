"""The gangs of a namespace, live: JobSets, Jobs, pods and ConfigMaps, watched and joined as the controller does it."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

from jobset_gate import names
from jobset_gate.barrier import decode, wire
from jobset_gate.barrier.model import ConfigMapSeen, GangSnapshot, JobSeen, JobSetSeen, PodSeen
from jobset_gate.cli.fetch.permissions import Permissions, forbidden_text
from jobset_gate.cli.watch.source import VERBS, ResourceWatch, is_forbidden, is_not_found
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, JOBSETS, PODS, Resource
from jobset_gate.runtime.decoder import WatchProblem
from jobset_gate.runtime.informer import Informer

GATED = f"{names.GATED}={names.GATED_VALUE}"
GATES = f"{names.GATE}={names.GATE_VALUE}"
_LOST = {
    JOBS: "what has finished is not known",
    PODS: "how many have started is not known",
    CONFIGMAPS: "what was decided is known from the JobSet's condition only",
}

T = TypeVar("T", JobSeen, PodSeen)


class GangWatch(ResourceWatch):
    """`blind` where pods or Jobs may not be watched, so that nothing can be counted. `name`: only that JobSet's.

    `needed`: without JobSets there is nothing to see; otherwise that they are missing is one more thing to say.
    """

    def __init__(
        self,
        client: Client,
        namespace: str | None,
        rights: Permissions,
        *,
        name: str = "",
        needed: bool = True,
        changed: asyncio.Event | None = None,
    ) -> None:
        super().__init__(changed)
        self._namespace, self._rights = namespace, rights
        self._needed = needed
        self._lost: set[Resource] = set()
        mine = f"{GATED},{names.JS_NAME}={name}" if name else GATED
        own, map_ = (f"metadata.name={name}", f"metadata.name={names.config_map_name(name)}") if name else ("", "")
        self._jobsets: Informer[wire.JobSet, JobSetSeen] = self.watch(
            client, JOBSETS, wire.JobSet, decode.jobset, namespace, fields=own
        )
        self._jobs: Informer[wire.Job, JobSeen] = self.watch(client, JOBS, wire.Job, decode.job, namespace, labels=mine)
        self._pods: Informer[wire.Pod, PodSeen] = self.watch(client, PODS, wire.Pod, decode.pod, namespace, labels=mine)
        self._gates: Informer[wire.ConfigMap, ConfigMapSeen] = self.watch(
            client, CONFIGMAPS, wire.ConfigMap, decode.config_map, namespace, labels=GATES, fields=map_
        )

    @property
    def pods_forbidden(self) -> bool:
        """Whether nothing can be counted."""
        return bool(self._lost & {PODS, JOBS})

    def gangs(self) -> list[GangSnapshot]:
        """By namespace and name."""
        jobs, pods = _by_gang(self._jobs.cache.values()), _by_gang(self._pods.cache.values())
        found = []
        for (namespace, name), jobset in sorted(self._jobsets.cache.items()):
            gate = self._gates.cache.get((namespace, names.config_map_name(name)))
            one = GangSnapshot(
                jobset=jobset,
                jobs=tuple(jobs[namespace, name]),
                pods=tuple(pods[namespace, name]),
                config_map=gate,
                config_map_conflict=gate is None and _conflicts(jobset),
            )
            found.append(one)
        return found

    def lost(self, number: int, problem: WatchProblem) -> bool:
        """Without JobSets there is nothing to see; without the rest less of them."""
        del number
        if problem.resource == JOBSETS:
            return self._without_jobsets(problem)
        if is_forbidden(problem):
            self._lost.add(problem.resource)
            self._rights.add_missing(VERBS[problem.kind], problem.resource, self._namespace, _LOST[problem.resource])
            return True
        return False

    def _without_jobsets(self, problem: WatchProblem) -> bool:
        told = "the cluster knows no JobSets: their CRD is not installed" if is_not_found(problem) else ""
        if is_forbidden(problem):
            told = forbidden_text(VERBS[problem.kind], JOBSETS, self._namespace)
        if told and self._needed:
            self.failed = told
        elif told and told not in self._rights.missing:
            self._rights.missing.append(told)
        return bool(told)


def _conflicts(jobset: JobSetSeen) -> bool:
    """What the controller has said: somebody else's ConfigMap is not among those that are watched."""
    return jobset.condition is not None and jobset.condition.reason == names.REASON_CONFIG_MAP_CONFLICT


def _by_gang(seen: Iterable[T]) -> defaultdict[tuple[str, str], list[T]]:
    found: defaultdict[tuple[str, str], list[T]] = defaultdict(list)
    for one in seen:
        found[one.namespace, one.gang].append(one)
    return found
