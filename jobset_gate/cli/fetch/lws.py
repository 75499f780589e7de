"""Groups of LeaderWorkerSets: their pods, StatefulSets and LeaderWorkerSets, joined as the controller does it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from jobset_gate import names
from jobset_gate.barrier import lws_wire, wire
from jobset_gate.barrier.model import ConfigMapSeen, GangKey, GangSnapshot, PodSeen
from jobset_gate.cli.fetch.source import Permissions, Unavailable, by_gang, keep
from jobset_gate.kube.resources import LEADER_WORKER_SETS, PODS, STATEFUL_SETS, Resource
from jobset_gate.objects.unstructured import Json
from jobset_gate.runtime.informer import AnyWatchSource, WatchSource
from jobset_gate.sources import lws
from jobset_gate.sources.table import LWS

if TYPE_CHECKING:
    from jobset_gate.runtime.store import ObjectKey

GATED_PODS: Final = f"{names.GATED}={LWS.gated}"
"""Label selector of the pods of all groups."""
_UNKNOWN: Final = {
    STATEFUL_SETS: "worker pods are taken for those of the present leaders, whatever earlier ones there were",
    LEADER_WORKER_SETS: "whether a LeaderWorkerSet has a bypass, an on-timeout or other groups is not known",
}


class LwsObjects:
    """Those of a namespace (None: of all). `labels`: of the pods of one LeaderWorkerSet, or of one of its groups.

    `name`: of that LeaderWorkerSet; `selector`: only groups of LeaderWorkerSets that fit it.
    """

    def __init__(self, namespace: str | None, labels: str = "", name: str = "", selector: str = "") -> None:
        self._namespace, self._labels, self._name, self._selector = namespace, labels, name, selector
        self.pods: dict[ObjectKey, PodSeen] = {}
        self._worker_sets: dict[ObjectKey, lws.WorkerSetSeen] = {}
        self.found: dict[ObjectKey, tuple[lws.LeaderWorkerSetSeen | None]] = {}
        """LeaderWorkerSets; None for one without a config."""
        self.forbidden: dict[Resource, str] = {}
        """With the verb."""

    def sources(self) -> list[AnyWatchSource]:
        """What to read: the pods first."""
        gated = ",".join(filter(None, (GATED_PODS, self._labels)))
        made, field = self._labels or names.LWS_NAME, f"metadata.name={self._name}" if self._name else ""
        where = self._namespace
        return [
            WatchSource(PODS, wire.MemberPod, lws.pod, keep(self.pods), where, gated),
            WatchSource(STATEFUL_SETS, lws_wire.WorkerSet, lws.worker_set, keep(self._worker_sets), where, made),
            WatchSource(
                LEADER_WORKER_SETS,
                lws_wire.LeaderWorkerSet,
                lambda raw: (_with_config(lws.leader_worker_set(raw)),),
                keep(self.found),
                where,
                self._selector,
                field,
            ),
        ]

    @property
    def is_wanted(self) -> bool:
        """Whether StatefulSets and LeaderWorkerSets matter."""
        return bool(self.pods or self._name)

    def on_unavailable(self, it: Unavailable) -> None:
        """Of StatefulSets and LeaderWorkerSets: those that do not exist are no error, nor is a CRD."""
        if it.forbidden:
            self.forbidden[it.source.resource] = it.verb

    def add_missing(self, permissions: Permissions) -> None:
        """Names what is not known of the groups that there are."""
        for resource, verb in self.forbidden.items():
            permissions.add_missing(verb, resource, self._namespace, _UNKNOWN[resource])

    def gangs(self, config_map: Callable[[GangKey], tuple[ConfigMapSeen | None, bool]]) -> Iterator[GangSnapshot]:
        """By namespace, LeaderWorkerSet and number."""
        for key, pods in sorted(by_gang(self.pods.values()).items(), key=lambda it: _order(it[0])):
            its = (key.namespace, lws.parent_name(key))
            if self._selector and its not in self.found:
                continue
            gate, conflict = config_map(key)
            parent = lws.parent(self.found.get(its, (None,))[0])
            gathered = lws.gather(key, pods, self._leaders(key, pods), parent, gate)
            if gathered is not None:
                workload, job, members = gathered
                gang = GangSnapshot(workload=workload, jobs=(job,), pods=members, config_map=gate)
                yield msgspec.structs.replace(gang, config_map_conflict=conflict)

    def _leaders(self, key: GangKey, pods: list[PodSeen]) -> dict[str, str]:
        """UIDs of leader pods by those of StatefulSets; without the right to these, of the leader that there is."""
        if STATEFUL_SETS in self.forbidden:
            leader = next((it.uid for it in pods if it.name == key.name), "")
            return {it.job_uid: leader for it in pods if it.name != key.name}
        found = self._worker_sets.get((key.namespace, key.name))
        return {} if found is None else {found.uid: found.leader_uid}


def _with_config(found: lws.LeaderWorkerSetSeen | None) -> lws.LeaderWorkerSetSeen | None:
    return found if found is not None and found.has_config else None


def leader_of(pod: Json) -> str:
    """Name of the leader pod of the gated group that this pod is of; "" of any other pod."""
    labels = pod.get("metadata", {}).get("labels") or {}
    if labels.get(names.GATED) != LWS.gated:
        return ""
    found = lws.pod(msgspec.convert(pod, wire.MemberPod))
    return "" if found is None else found.gang


def _order(key: GangKey) -> tuple[str, str, int]:
    return key.namespace, lws.parent_name(key), lws.group_index(key)
