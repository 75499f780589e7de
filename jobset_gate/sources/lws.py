"""The source `lws`: how a leader pod and the worker pods of its StatefulSet become the snapshot of a gang (K5).

The generation is the UID of the leader pod. A worker pod belongs to it if the StatefulSet that controls it is, by UID,
controlled by that leader: after a background deletion the next leader of the name exists before the old workers go.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from jobset_gate import names
from jobset_gate.barrier import lws_wire, verdict_codec, wire
from jobset_gate.barrier.member import ObjectSeen
from jobset_gate.barrier.model import (
    ConditionSeen,
    Config,
    ConfigMapSeen,
    GangKey,
    GangSnapshot,
    Generation,
    PodSeen,
    Value,
    WorkloadSeen,
)
from jobset_gate.barrier.source import name_and_index
from jobset_gate.sources import decode, members, templates
from jobset_gate.sources.members import Gathered
from jobset_gate.sources.slot import Slot
from jobset_gate.sources.table import LWS

_STATEFUL_SET = "StatefulSet"


class WorkerSetSeen(Value, frozen=True):
    """A StatefulSet of worker pods."""

    namespace: str
    name: str
    """That of its leader pod."""
    uid: str
    leader_uid: str


class LeaderWorkerSetSeen(Value, frozen=True):
    """A LeaderWorkerSet with a config. That of a group stands on its leader pod, which may be of an older revision."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    has_config: bool
    """False after the config was removed, as long as the condition of its groups is still there."""
    deleting: bool
    replicas: int
    bypass: bool
    releases_on_timeout: bool
    condition: ConditionSeen | None


class Parent(NamedTuple):
    """What a group takes from its LeaderWorkerSet; the defaults where that is gone."""

    uid: str = ""
    bypass: bool = False
    releases_on_timeout: bool = False


NO_PARENT: Final = Parent()


def parent(seen: LeaderWorkerSetSeen | None) -> Parent:
    """What groups take from this LeaderWorkerSet."""
    return NO_PARENT if seen is None or not seen.has_config else Parent(seen.uid, seen.bypass, seen.releases_on_timeout)


def leader_worker_set(seen: lws_wire.LeaderWorkerSet) -> LeaderWorkerSetSeen | None:
    """None with neither a config nor the condition that is left of one."""
    meta, notes = seen.metadata, seen.metadata.annotations or templates.NO_ANNOTATIONS
    condition = templates.our_condition(seen.status.conditions)
    if notes.config is None and condition is None:
        return None
    return LeaderWorkerSetSeen(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        has_config=notes.config is not None,
        deleting=meta.deletion_timestamp is not None,
        replicas=1 if seen.spec.replicas is None else seen.spec.replicas,
        bypass=notes.bypass == "true",
        releases_on_timeout=notes.on_timeout == names.ON_TIMEOUT_RELEASE,
        condition=condition,
    )


def worker_set(seen: lws_wire.WorkerSet) -> WorkerSetSeen | None:
    """None for a StatefulSet of leader pods, and for one that no leader pod of its name controls."""
    meta, owner = seen.metadata, decode.controller_owner(seen.metadata.owner_references)
    if owner is None or owner.kind != "Pod" or owner.name != meta.name:
        return None
    return WorkerSetSeen(namespace=meta.namespace, name=meta.name, uid=meta.uid, leader_uid=owner.uid)


def parent_name(key: GangKey) -> str:
    """Name of the LeaderWorkerSet of a gang."""
    return name_and_index(key.name)[0]


def group_index(key: GangKey) -> int:
    """Index of a group, -1 for a leader pod that LWS has not named."""
    return verdict_codec.parse_number(name_and_index(key.name)[1], -1)


def worker_sets_selector(workload: WorkloadSeen) -> str:
    """Selects the StatefulSets of this group's workers: under its present leader, and under earlier ones."""
    name, index = name_and_index(workload.name)
    return f"{names.LWS_NAME}={name},{names.LWS_GROUP_INDEX}={index}"


def pod(seen: wire.MemberPod) -> PodSeen | None:
    """A pod of a LeaderWorkerSet, of no workload yet unless it is a leader. None for a pod that LWS has not made."""
    meta, labels = seen.metadata, seen.metadata.labels or wire.NO_LABELS
    owner = decode.controller_owner(meta.owner_references)
    index = verdict_codec.parse_number(labels.worker_index, -1)
    if owner is None or owner.kind != _STATEFUL_SET or not labels.lws or index < 0:
        return None
    leads = index == 0
    gang, its = (meta.name, meta.uid) if leads else (owner.name, owner.uid)
    if name_and_index(gang)[0] != labels.lws:
        return None
    found, notes = decode.pod(seen, lambda *_: _NO_SLOT), meta.annotations or templates.NO_ANNOTATIONS
    made_by = ObjectSeen(api_version=LWS.api_version, kind=LWS.kind, name=labels.lws)
    return msgspec.structs.replace(
        found,
        gang=gang,
        workload_uid=meta.uid if leads else "",
        index=index,
        epoch=0,
        verdict=verdict_codec.addressee_verdict(found.verdict, found.uid, its),
        member=members.member(seen, made_by, verdict_codec.parse_number(notes.lws_size, 0)),
        token=notes.token[: templates.MAX_TEXT],
    )


_NO_SLOT = Slot(LWS.name, "", "", members.TARGET, 0, 0)


def leader_uid(pod: PodSeen, worker_sets: Mapping[str, str]) -> str:
    """UID of the leader pod whose group this pod belongs to, "" while its StatefulSet is unknown.

    `worker_sets`: the UIDs of the leaders by those of the StatefulSets.
    """
    return worker_sets.get(pod.job_uid, "") if pod.index else pod.uid


def of_leader(pod: PodSeen, leader: str) -> PodSeen:
    """The pod as one of this leader's group, or of none while its StatefulSet is unknown."""
    verdict = _verdict_of(pod.verdict, leader) if pod.verdict and leader else pod.verdict
    if pod.workload_uid == leader and pod.verdict == verdict:
        return pod
    return msgspec.structs.replace(pod, workload_uid=leader, verdict=verdict)


def gather(
    key: GangKey, pods: Collection[PodSeen], worker_sets: Mapping[str, str], parent: Parent, gate: ConfigMapSeen | None
) -> Gathered | None:
    """The gang that these pods are; None without a leader pod, and where no pod says the size of the group.

    `gate`: its ConfigMap, None if there is none.
    """
    leader = next((it for it in pods if it.name == key.name and not it.index), None)
    if leader is None or leader.member is None:
        return None
    ours = tuple(of_leader(it, leader.uid) for it in pods if leader_uid(it, worker_sets) == leader.uid)
    size = leader.member.size or max(it.member.size for it in ours if it.member is not None)
    if size < 1:  # the annotation that LWS writes on all pods was removed from all
        return None
    begun = [it.created for it in ours if it.created is not None]
    begun += [it.barrier_since for it in ours if it.barrier_since is not None]
    own = gate is not None and gate.workload_uid == leader.uid
    if gate is not None and own and gate.waiting_since is not None:
        begun.append(gate.waiting_since.at)
    workload = WorkloadSeen(
        source=LWS,
        namespace=key.namespace,
        name=key.name,
        uid=leader.uid,
        created=min(begun, default=0.0),
        deleting=leader.deleting,
        finished=not leader.live,
        config=Config(timeout=leader.member.timeout),
        bypass=parent.bypass,
        releases_on_timeout=parent.releases_on_timeout,
        replicated_jobs=members.only_target(size, leader.member.devices, indexed=True),
        owner=msgspec.structs.replace(leader.member.owner, uid=parent.uid),
        bare_pod=members.bare_pod(ours, {id(it.member): it.member for it in ours if it.member is not None}.values()),
    )
    return Gathered(workload, members.only_job(workload, key.name), ours)


def regathered(seen: GangSnapshot, pods: Collection[PodSeen], worker_sets: Mapping[str, str]) -> GangSnapshot | None:
    """The snapshot made again from these pods; None if the leader is gone or another one."""
    its = seen.workload
    parent = Parent("" if its.owner is None else its.owner.uid, its.bypass, its.releases_on_timeout)
    found = gather(its.key, pods, worker_sets, parent, seen.config_map)
    if found is None or found.workload.uid != its.uid:
        return None
    return msgspec.structs.replace(seen, workload=found.workload, jobs=(found.job,), pods=found.pods)


@lru_cache(maxsize=4096)
def _verdict_of(text: str, leader: str) -> str:
    """The verdict as that of the generation of this leader. A group has one attempt, 0."""
    verdict = verdict_codec.parse(text)
    if verdict is None or verdict.generation.attempt != 0:
        return ""
    return verdict_codec.render(msgspec.structs.replace(verdict, generation=Generation(leader, 0, 0)))
