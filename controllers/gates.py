"""Keeps a gang's ConfigMap: creates it, and changes it by compare-and-swap only (A6.1, A10).

The write that puts a verdict into it is the decision. Everything here may be interrupted anywhere: a successor finds
either the old content or the new one.
"""

from collections.abc import Mapping
from typing import Any

from controllers.index import Index
from controllers.keys import Key
from jobset_gate import names, read, verdicts, wire
from jobset_gate.errors import JobsetGateError
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS
from jobset_gate.kube.store import Version
from jobset_gate.kube.witness import Witness
from jobset_gate.model import GangSeen, GateSeen, JobSetSeen, Verdict, WaitingSince
from jobset_gate.template import items, mapping


class LookAgain(JobsetGateError):
    """Somebody else wrote first, or our view was old: nothing was lost, the gang must be looked at again."""


class ForeignGate(LookAgain):
    """A ConfigMap with the gang's name exists and is not ours."""


class Gates:
    """The ConfigMaps of all gangs. What its reads and writes show goes to the witness, who knows what is news.

    `client` repeats nothing: what it would send again was decided before the last count (faults.md 9).
    """

    def __init__(self, client: Client, index: Index, witness: Witness[wire.ConfigMap, GateSeen]) -> None:
        self._client, self._index, self._witness = client, index, witness

    async def keep(self, seen: GangSeen, verdict: Verdict | None, clock: WaitingSince | None) -> None:
        """Makes the gang's ConfigMap hold this verdict and this clock. No write if it does.

        Raises LookAgain when another writer was faster, ForeignGate when the name is taken by something not ours.
        """
        key = Key(seen.jobset.namespace, seen.jobset.name)
        gate = seen.gate
        if gate is not None and gate.jobset_uid != seen.jobset.uid:
            await self._remove(key, seen.jobset, gate)
            gate = None
        if gate is None:
            await self._create(key, seen.jobset, verdict, clock)
            return
        wanted = verdicts.gate_data(verdict, clock)
        if gate.tidy and wanted == verdicts.gate_data(gate.verdict, gate.waiting_since):
            return
        await self._replace(key, seen.jobset, gate, wanted)

    async def look(self, key: Key) -> GateSeen | None:
        """The ConfigMap as it stands in the API now; None if there is none. Raises ForeignGate if it is not ours."""
        name = names.config_map_name(key.name)
        known = self._witness.known((key.namespace, name))
        try:
            stored = await self._client.get(CONFIGMAPS, name, key.namespace, type=wire.ConfigMap)
        except NotFound:
            return self._missed(key, known)
        gate = self._saw(key, stored)
        if gate is None and read.gate(stored) is None:
            self._index.saw_foreign_gate(key)
            raise ForeignGate(f"the ConfigMap {stored.metadata.name} of gang {key} is not ours")
        return gate

    async def _create(self, key: Key, jobset: JobSetSeen, verdict: Verdict | None, clock: WaitingSince | None) -> None:
        body = _body(jobset, verdicts.gate_data(verdict, clock))
        try:
            stored = await self._client.create(CONFIGMAPS, body, key.namespace, type=wire.ConfigMap)
        except AlreadyExists as taken:
            # Ours from before a crash, the winner's of a race, or a stranger's: the API knows.
            await self.look(key)
            raise LookAgain(f"the ConfigMap of gang {key} was there already") from taken
        self._saw(key, stored)

    async def _replace(self, key: Key, jobset: JobSetSeen, gate: GateSeen, data: Mapping[str, str]) -> None:
        body = _body(jobset, data)
        # The resourceVersion makes it a compare-and-swap, the UID keeps a namesake made meanwhile out of it.
        body["metadata"] |= {"resourceVersion": gate.resource_version, "uid": gate.uid}
        try:
            stored = await self._client.replace(CONFIGMAPS, body, type=wire.ConfigMap)
        except (Conflict, NotFound) as beaten:
            await self.look(key)
            raise LookAgain(f"the ConfigMap of gang {key} was changed by somebody else") from beaten
        except Invalid as refused:
            if not _is_immutable(refused):
                raise
            # Somebody has set `immutable`, or a policy for all ConfigMaps has: made anew it takes what it is to hold.
            await self._delete(key, gate)
            raise LookAgain(f"the ConfigMap of gang {key} was immutable and is made anew") from refused
        self._saw(key, stored)

    async def _remove(self, key: Key, jobset: JobSetSeen, gate: GateSeen) -> None:
        """Deletes what an earlier JobSet of this name left behind, unless our own view is the old one."""
        try:
            live = await self._client.get(JOBSETS, key.name, key.namespace, type=wire.JobSet)
        except NotFound as gone:
            raise LookAgain(f"the JobSet {key} is gone") from gone
        if live.metadata.uid != jobset.uid:
            raise LookAgain(f"the JobSet {key} was made anew")
        await self._delete(key, gate)

    async def _delete(self, key: Key, gate: GateSeen) -> None:
        """This very version of it. Raises LookAgain if it is another by now."""
        try:
            await self._client.delete(
                CONFIGMAPS, gate.name, gate.namespace, uid=gate.uid, resource_version=gate.resource_version
            )
        except (Conflict, NotFound) as changed:
            await self.look(key)
            raise LookAgain(f"the ConfigMap of gang {key} was changed by somebody else") from changed
        self._missed(key, Version(gate.uid, gate.resource_version))

    def _saw(self, key: Key, stored: wire.ConfigMap) -> GateSeen | None:
        gate = self._witness.saw(stored)
        self._index.saw_gate(key, gate)
        return gate

    def _missed(self, key: Key, version: Version | None) -> GateSeen | None:
        gate = self._witness.missed((key.namespace, names.config_map_name(key.name)), version)
        self._index.saw_gate(key, gate)
        return gate


def _is_immutable(refused: Invalid) -> bool:
    """Whether it is the object that takes no change, and not a policy that lets us make none."""
    return any(mapping(it).get("field") == "immutable" for it in items(refused.details.get("causes")))


def _body(jobset: JobSetSeen, data: Mapping[str, str]) -> dict[str, Any]:
    """The whole object: a replace puts edited labels and owners right as well."""
    return {
        "metadata": {
            "name": names.config_map_name(jobset.name),
            "namespace": jobset.namespace,
            "labels": {names.GATE: names.GATE_VALUE, names.MANAGED_BY_LABEL: names.PROGRAM},
            "annotations": {names.JOBSET_UID: jobset.uid},
            # No blockOwnerDeletion: a gate must never hold up the deletion of its JobSet (A10).
            "ownerReferences": [
                {
                    "apiVersion": names.JOBSET_API_VERSION,
                    "kind": "JobSet",
                    "name": jobset.name,
                    "uid": jobset.uid,
                    "controller": False,
                }
            ],
        },
        "data": dict(data),
    }
