"""Stores verdicts in ConfigMaps, one per gang, by compare-and-swap (A6.1, A10).

The write of a verdict is the decision. After a crash at any point the ConfigMap holds the old content or the new one.
"""

from collections.abc import Awaitable, Mapping
from typing import Any

from controllers.barrier.cache import GangCache
from controllers.barrier.workloads import WORKLOADS
from jobset_gate import names
from jobset_gate.barrier import messages, verdict_codec, wire
from jobset_gate.barrier.member import Membership
from jobset_gate.barrier.model import (
    ConfigMapSeen,
    DesiredCondition,
    GangKey,
    GangSnapshot,
    Verdict,
    WaitingSince,
    WorkloadSeen,
)
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from jobset_gate.kube.resources import CONFIGMAPS
from jobset_gate.objects.unstructured import as_list, as_map
from jobset_gate.runtime.store import ObjectVersion, Store
from jobset_gate.runtime.workqueue import Requeue
from jobset_gate.sources import decode, startgroup
from jobset_gate.sources.table import config_map_name


class ConfigMapConflict(Requeue):
    """A ConfigMap with the gang's name exists without our label."""


class VerdictStore:
    """The ConfigMaps of all gangs; reads and writes update the informer's store.

    `client` does not retry: a retried write would carry a decision older than the last count.
    """

    def __init__(self, client: Client, index: GangCache, store: Store[wire.ConfigMap, ConfigMapSeen]) -> None:
        self._client, self._index, self._store = client, index, store

    async def ensure_config_map(
        self,
        seen: GangSnapshot,
        verdict: Verdict | None,
        clock: WaitingSince | None,
        condition: DesiredCondition | None = None,
    ) -> None:
        """Creates or replaces the gang's ConfigMap unless it has this content.

        `condition`: written with it where the ConfigMap is all there is to carry one, so that no second write follows
        or conflicts. Raises Requeue on a conflict, and after the ConfigMap of an earlier workload was deleted;
        ConfigMapConflict if an unrelated ConfigMap has the name.
        """
        key = seen.workload.key
        gate = seen.config_map
        if gate is not None and gate.workload_uid != seen.workload.uid:
            await self._remove(key, seen.workload, gate)
            raise Requeue(f"the ConfigMap of an earlier {key} is deleted: pods may have gone meanwhile")
        membership = _membership(seen, gate, verdict, clock)
        condition = condition or seen.workload.condition
        if gate is not None and gate.canonical and gate.membership == membership:
            # Without the members, which are many, and there already.
            found = verdict_codec.config_map_data(gate.verdict, gate.waiting_since)
            data = verdict_codec.config_map_data(verdict, clock)
            if found == data:
                return
            if membership is not None:
                await self._patch(key, gate, condition, dict.fromkeys(found) | data)
                return
        body = config_map_body(seen.workload, verdict_codec.config_map_data(verdict, clock, membership), condition)
        if gate is None:
            await self._create(key, body)
            return
        # resourceVersion: compare-and-swap. uid: not a ConfigMap that was created again under the same name.
        body["metadata"] |= {"resourceVersion": gate.resource_version, "uid": gate.uid}
        await self._swap(key, gate, self._client.replace(CONFIGMAPS, body, type=wire.ConfigMap))

    async def get_config_map(self, key: GangKey) -> ConfigMapSeen | None:
        """The ConfigMap in the API, None if it does not exist. Raises ConfigMapConflict if it has not our label."""
        name = config_map_name(key)
        known = self._store.version_of((key.namespace, name))
        try:
            stored = await self._client.get(CONFIGMAPS, name, key.namespace, type=wire.ConfigMap)
        except NotFound:
            return self._set_absent(key, known)
        gate = self._set_config_map(key, stored)
        if gate is None and decode.config_map(stored) is None:
            self._index.set_config_map_conflict(key)
            raise ConfigMapConflict(f"the ConfigMap {stored.metadata.name} of gang {key} has not our label")
        return gate

    async def annotate_condition(self, workload: WorkloadSeen, condition: DesiredCondition) -> None:
        """Writes the condition GroupStarted where the ConfigMap is all there is to carry it (K7).

        Nothing without a ConfigMap, which the next pass creates, or if it was written with the verdict. Nor next to
        another verdict: the condition would decide on pods that came later. Raises Requeue on a conflict.
        """
        key = workload.key
        gate = self._store.models.get((key.namespace, config_map_name(key)))
        if gate is None or (gate.condition is not None and gate.condition.says(condition)):
            return
        decided = messages.verdict_in_condition(condition, workload.uid)
        if decided is None or (gate.verdict is not None and decided.generation == gate.verdict.generation):
            await self._patch(key, gate, condition, {})

    async def _create(self, key: GangKey, body: dict[str, Any]) -> None:
        try:
            stored = await self._client.create(CONFIGMAPS, body, key.namespace, type=wire.ConfigMap)
        except AlreadyExists as taken:
            # Created before a crash, by another replica, or unrelated.
            raise await self._lost_race(key) from taken
        self._set_config_map(key, stored)

    async def _patch(
        self, key: GangKey, gate: ConfigMapSeen, condition: DesiredCondition | None, data: Mapping[str, str | None]
    ) -> None:
        """Compare-and-swap of these keys and the condition. The null makes a refusal say if the object is immutable."""
        # Strategic: for a merge patch an API server makes a JSON text of all data, the members too, and parses it.
        metadata = {"resourceVersion": gate.resource_version, "annotations": condition_annotations(condition)}
        body, how = {"metadata": metadata} | ({"data": data, "immutable": None} if data else {}), PatchType.STRATEGIC
        patched = self._client.patch(CONFIGMAPS, gate.name, gate.namespace, body=body, patch=how, type=wire.ConfigMap)
        await self._swap(key, gate, patched)

    async def _swap(self, key: GangKey, gate: ConfigMapSeen, write: Awaitable[wire.ConfigMap]) -> None:
        """Raises Requeue if the ConfigMap is no longer `gate`, or is immutable."""
        try:
            stored = await write
        except (Conflict, NotFound) as beaten:
            raise await self._lost_race(key) from beaten
        except Invalid as refused:
            if not _is_immutable(refused):
                raise
            # A user or a policy has set `immutable`: delete the ConfigMap, and create it with the new content.
            await self._delete(key, gate)
            raise Requeue(f"the ConfigMap of gang {key} was immutable and is created again") from refused
        self._set_config_map(key, stored)

    async def _remove(self, key: GangKey, workload: WorkloadSeen, gate: ConfigMapSeen) -> None:
        """Deletes the ConfigMap of an earlier workload of this name, unless the cached workload is the earlier one."""
        kind = WORKLOADS[key.source].kind
        try:
            live = await self._client.get(WORKLOADS[key.source], key.name, key.namespace, type=wire.AnyObject)
        except NotFound as gone:
            raise Requeue(f"the {kind} {key} is gone") from gone
        if live.metadata.uid != workload.uid:
            raise Requeue(f"the {kind} {key} was created again")
        await self._delete(key, gate)

    async def _delete(self, key: GangKey, gate: ConfigMapSeen) -> None:
        """Deletes this version. Raises Requeue if the ConfigMap has changed."""
        try:
            await self._client.delete(
                CONFIGMAPS, gate.name, gate.namespace, uid=gate.uid, resource_version=gate.resource_version
            )
        except (Conflict, NotFound) as changed:
            raise await self._lost_race(key) from changed
        self._set_absent(key, ObjectVersion(gate.uid, gate.resource_version))

    async def _lost_race(self, key: GangKey) -> Requeue:
        """After another client's write, which is read; raises ConfigMapConflict if the ConfigMap is unrelated."""
        await self.get_config_map(key)
        return Requeue(f"the ConfigMap of gang {key} was changed by another client")

    def _set_config_map(self, key: GangKey, stored: wire.ConfigMap) -> ConfigMapSeen | None:
        gate = self._store.observe_object(stored)
        self._index.set_config_map(key, gate)
        return gate

    def _set_absent(self, key: GangKey, version: ObjectVersion | None) -> ConfigMapSeen | None:
        gate = self._store.observe_absence((key.namespace, config_map_name(key)), version)
        self._index.set_config_map(key, gate)
        return gate


def _is_immutable(refused: Invalid) -> bool:
    """True if the object is immutable, false if a policy denied the write."""
    return any(as_map(it).get("field") == "immutable" for it in as_list(refused.details.get("causes")))


def _membership(
    seen: GangSnapshot, gate: ConfigMapSeen | None, verdict: Verdict | None, clock: WaitingSince | None
) -> Membership | None:
    """What is to be written with this verdict and this clock, if anything; `gate`: what is there already."""
    if not seen.workload.source.keeps_attempt:
        return None
    known = () if gate is None else (gate.verdict, gate.waiting_since)
    its = [it for it in (verdict, clock) if it is not None and it.generation.attempt == seen.workload.attempt]
    # A verdict that stands has its members already: a replica whose view is old must not replace them.
    begins = verdict not in known if verdict in its else any(it not in known for it in its)
    return startgroup.membership_to_write(seen, begins=begins)


def config_map_body(
    workload: WorkloadSeen, data: Mapping[str, str], condition: DesiredCondition | None
) -> dict[str, Any]:
    """The whole object, so that a replace restores edited labels and owners."""
    labels = {names.GATE: names.GATE_VALUE, names.MANAGED_BY_LABEL: names.PROGRAM}
    notes = {names.JOBSET_UID: workload.uid}
    if workload.source.keeps_attempt:
        labels[names.START_GROUP] = workload.shown_name
        notes |= condition_annotations(condition)
    return {
        "metadata": {
            "name": workload.source.config_map_name(workload.name),
            "namespace": workload.namespace,
            "labels": labels,
            "annotations": notes,
            # No blockOwnerDeletion: the ConfigMap must not delay the deletion of its workload (A10).
            "ownerReferences": [_owner(workload)],
        },
        "data": dict(data),
    }


def _owner(workload: WorkloadSeen) -> dict[str, Any]:
    """The object that has the UID of the workload's generation."""
    known = WORKLOADS.get(workload.source.name)
    its, name = (workload.involved_object, workload.involved_object.name) if known is None else (known, workload.name)
    return {"apiVersion": its.api_version, "kind": its.kind, "name": name, "uid": workload.uid, "controller": False}


def condition_annotations(condition: DesiredCondition | None) -> dict[str, str]:
    """The condition as annotations of the ConfigMap, of a workload that is no object with a status (K7)."""
    if condition is None:
        return {}
    return {names.GROUP_STARTED: condition.status, names.GANG_STATE: f"{condition.reason}: {condition.message}"}
