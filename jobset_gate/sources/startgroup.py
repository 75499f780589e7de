"""The source `startgroup`: how the pods of one name under one controller owner become the snapshot of a gang (K5).

Nothing but its pods and its ConfigMap is the workload. The webhook knows no history, so nothing marks a pod with its
generation: the attempt is a number in the ConfigMap, and which pods belong to it is decided here, from their UIDs.
"""

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import groupby
from typing import Final

import msgspec

from jobset_gate.barrier import verdict_codec, wire
from jobset_gate.barrier.member import MemberSeen, Membership, ObjectSeen
from jobset_gate.barrier.model import BarrierStage, Config, ConfigMapSeen, GangKey, GangSnapshot, PodSeen, WorkloadSeen
from jobset_gate.sources import decode, members, templates
from jobset_gate.sources.members import Gathered
from jobset_gate.sources.slot import Slot
from jobset_gate.sources.table import START_GROUP

MAX_SIZE: Final = 10_000
"""Pods of a start group (K2)."""
MAX_DIFFERING: Final = 10
"""Pods that are named when the pods of a group say different things."""
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""A group's name and its owner's UID: both are in the name of its ConfigMap."""
_KIND: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
_OWNER_NAME: Final = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
"""An API server takes any text in an ownerReference, and people get these in commands."""


def gang_name(group: str, owner_uid: str) -> str:
    """Name of the gang: two owners of one name are two gangs. A group's name is a DNS label, so it has no dot."""
    return f"{group}.{owner_uid}"


def group_and_owner(gang: str) -> tuple[str, str]:
    """The reverse: the group's name, and the UID of the pods' owner."""
    group, _, owner = gang.partition(".")
    return group, owner


# --- Pods ------------------------------------------------------------------------------------------------------------


def pod(seen: wire.MemberPod) -> PodSeen | None:
    """A pod of a start group. Its verdict is the gang's if it is addressed to this pod, else none.

    None for a pod that the webhook refuses or never sees: without a controller owner, with a malformed name of a group,
    or a static pod's mirror.
    """
    meta, labels = seen.metadata, seen.metadata.labels or wire.NO_LABELS
    owner = decode.controller_owner(meta.owner_references)
    if owner is None or owner.kind == "Node":
        return None
    if not (_NAME.fullmatch(owner.uid) and _NAME.fullmatch(labels.start_group)):
        return None
    if not (_KIND.fullmatch(owner.kind) and _OWNER_NAME.fullmatch(owner.name)):
        return None
    found = decode.pod(seen, _slot)
    notes = meta.annotations or templates.NO_ANNOTATIONS
    return msgspec.structs.replace(
        found,
        verdict=verdict_codec.addressee_verdict(found.verdict, found.uid, owner.uid),
        member=members.member(
            seen, ObjectSeen(api_version=owner.api_version, kind=owner.kind, name=owner.name), _size(notes.start_size)
        ),
        token=notes.token[: templates.MAX_TEXT],
    )


def _slot(labels: wire.Labels, owner: wire.OwnerReference | None) -> Slot:
    uid = "" if owner is None else owner.uid
    return _slot_of(labels.start_group, uid)


def _size(text: str) -> int:
    """0 for a text that the webhook would refuse."""
    number = verdict_codec.parse_number(text, 0)
    return number if number <= MAX_SIZE else 0


@lru_cache(maxsize=4096)
def _slot_of(group: str, owner_uid: str) -> Slot:
    """One copy for all pods of a group."""
    return Slot(START_GROUP.name, gang_name(group, owner_uid), owner_uid, members.TARGET, 0, 0)


# --- The gang --------------------------------------------------------------------------------------------------------


def attempt_of(pods: Collection[PodSeen], kept: Membership | None) -> int:
    """The attempt of these pods (K5). It lasts while one live pod belongs to it; the next pods are the next attempt.

    `kept` is what the ConfigMap says. A pure function of both, so that a successor finds the same. Pods that have ended
    prove that an attempt was decided: no later pod may be bound by that, even if the ConfigMap was lost meanwhile.
    """
    decided = max(map(_attempt_in, {pod.verdict for pod in pods if pod.verdict}), default=-1)
    known = Membership(attempt=0) if kept is None else kept
    attempt = max(known.attempt, decided)
    members = known.members if known.attempt == attempt else frozenset()
    if not (members or decided == attempt):
        return attempt
    is_next = False
    for pod in pods:
        if pod.live:
            if pod.stage is BarrierStage.PASSED or pod.uid in members or _addressed_attempt(pod) == attempt:
                return attempt
            is_next = True
    return attempt + is_next


def latest(known: Membership | None, read: Membership | None) -> Membership | None:
    """What is to be remembered of two ConfigMaps of a group: one that was made again after a deletion may say less."""
    if known is None or read is None:
        return read if known is None else known
    return read if (read.attempt, bool(read.members)) >= (known.attempt, bool(known.members)) else known


def is_other(known: Membership | None, gate: ConfigMapSeen) -> bool:
    """True if this is not the attempt that was known by this number: of its members one lives while it lasts (K5)."""
    read = gate.membership
    if known is None or read is None or known.attempt != read.attempt:
        return False
    return bool(known.members and read.members) and known.members.isdisjoint(read.members)


def gather(
    key: GangKey, pods: Collection[PodSeen], kept: Membership | None, gate: ConfigMapSeen | None
) -> Gathered | None:
    """The gang that these pods are; None without pods.

    `kept`: what its ConfigMap says, or said before it was deleted; `gate`: the ConfigMap, None if there is none.
    """
    first = next((pod for pod in pods if pod.member is not None), None)
    if first is None:
        return None
    attempt = attempt_of(pods, kept)
    workload = _workload(key, attempt, pods, gate)
    job = members.only_job(workload, "" if workload.owner is None else workload.owner.name)
    return Gathered(workload, job, tuple(_of_attempt(pods, attempt, kept)))


def regathered(seen: GangSnapshot) -> GangSnapshot:
    """A start group's snapshot made again from its pods and its ConfigMap, where one was read from the API."""
    gate = seen.own_config_map
    kept = latest(seen.membership, None if gate is None else gate.membership)
    found = gather(seen.workload.key, seen.pods, kept, gate)
    if found is None:
        return seen
    workload, job, pods = found
    return msgspec.structs.replace(seen, workload=workload, jobs=(job,), pods=pods, membership=kept)


def membership_to_write(seen: GangSnapshot, *, begins: bool) -> Membership:
    """What the ConfigMap is to say. `begins`: clock or verdict are written, so the live pods are the members."""
    if begins:
        live = frozenset(pod.uid for pod in seen.pods if pod.live)
        return Membership(attempt=seen.workload.attempt, members=live)
    return seen.membership or Membership(attempt=seen.workload.attempt)


def cannot_gather(owner: wire.StatefulSet, size: int) -> str:
    """Why this owner never has so many pods at once, "" if it can (K8)."""
    who, replicas = f"the StatefulSet {owner.metadata.name}", 1 if owner.spec.replicas is None else owner.spec.replicas
    if owner.spec.pod_management_policy != "Parallel" and size > 1:
        return f"{who} creates its pods one by one, 1 of {size} can be there: use podManagementPolicy Parallel"
    return f"{who} has {replicas} replicas, {replicas} of {size} can be there" if replicas < size else ""


def lacks_capacity(owner: wire.StatefulSet | None, workload: WorkloadSeen) -> str:
    """The same of the gang's owner as it was read; "" if that is gone or another object of its name."""
    if owner is None or owner.metadata.uid != workload.uid:
        return ""
    return cannot_gather(owner, sum(target.expected for target in workload.targets))


def _workload(key: GangKey, attempt: int, pods: Collection[PodSeen], gate: ConfigMapSeen | None) -> WorkloadSeen:
    """Where the pods differ, the most patient value counts, so that a difference never releases early (K2)."""
    live = [pod for pod in pods if pod.live]
    asked = live or pods
    # Pods of one template share one copy, and hashing each would take most of the time of a pass.
    copies = {id(it): it for it, _ in groupby(pod.member for pod in asked) if it is not None}
    said = list(dict.fromkeys(copies.values()))
    timeouts = [it.timeout for it in said]
    timeout = None if None in timeouts else max((it for it in timeouts if it is not None), default=None)
    size, bypass = max((it.size for it in said), default=0), all(it.bypass for it in said)
    counts = (size, timeout, bypass, all(it.releases_on_timeout for it in said))
    begun = [pod.created for pod in asked if pod.created is not None]
    begun += [pod.barrier_since for pod in asked if pod.barrier_since is not None]
    odd = {it for it in said if _values(it) != counts}
    if gate is not None and gate.waiting_since is not None:
        begun.append(gate.waiting_since.at)
    return WorkloadSeen(
        source=START_GROUP,
        namespace=key.namespace,
        name=key.name,
        uid=group_and_owner(key.name)[1],
        created=min(begun, default=0.0),
        attempt=attempt,
        finished=not live,
        config=Config(timeout=timeout),
        bypass=bypass,
        releases_on_timeout=counts[-1],
        replicated_jobs=members.only_target(size, said[0].devices if said else (), indexed=False),
        condition=None if gate is None else gate.condition,
        owner=said[0].owner if said else None,
        bare_pod=members.bare_pod(live, said),
        differing=tuple(sorted(it.name for it in live if it.member in odd)[:MAX_DIFFERING]) if odd else (),
    )


def _values(member: MemberSeen) -> tuple[int, int | None, bool, bool]:
    return member.size, member.timeout, member.bypass, member.releases_on_timeout


def _of_attempt(pods: Iterable[PodSeen], attempt: int, kept: Membership | None) -> Iterable[PodSeen]:
    """The pods with their attempt. A Succeeded pod counts for the attempt that released it and for no later one.

    Except a batch Job's, whose success is final: it counts in every attempt, and proves the release of none. A pod that
    does not count stays, of no attempt: gathered once more, the pods are the same attempt.
    """
    members = kept.members if kept is not None and kept.attempt == attempt else frozenset()
    for one in pods:
        if one.phase != "Succeeded" or one.uid in members or _addressed_attempt(one) == attempt:
            yield one if one.attempt == attempt else msgspec.structs.replace(one, attempt=attempt)
        elif one.member is not None and _is_batch_job(one.member.owner):
            yield msgspec.structs.replace(one, attempt=attempt, epoch=-1, stage=BarrierStage.WAITING)
        else:
            yield msgspec.structs.replace(one, attempt=-1)


def _is_batch_job(owner: ObjectSeen) -> bool:
    """Other controllers, such as Volcano, have a kind Job of their own, which they restart as a whole."""
    return (owner.api_version, owner.kind) == ("batch/v1", "Job")


def _addressed_attempt(one: PodSeen) -> int:
    """The attempt of the verdict that this pod carries, -1 without one."""
    return _attempt_in(one.verdict) if one.verdict else -1


@lru_cache(maxsize=4096)
def _attempt_in(verdict: str) -> int:
    parsed = verdict_codec.parse(verdict)
    return -1 if parsed is None else parsed.generation.attempt
