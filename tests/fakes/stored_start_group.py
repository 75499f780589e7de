"""A namespace with a start group as it is stored in a cluster, and nobody who acts."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.member import Membership
from jobset_gate.barrier.model import Generation, Verdict, VerdictKind, WaitingSince
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import CONFIGMAPS, PODS
from jobset_gate.sources.startgroup import gang_name
from jobset_gate.sources.table import START_GROUP
from tests.fakes.stored_gang import Json, StoredJobSet
from tests.fakes.wire_objects import owner


class StoredStartGroup(StoredJobSet):
    """The start group `ring` of one owner, whose pods are `<owner>-0` and so on.

    The owner's kind is none that the server knows, so that no controller and no garbage collector minds its pods.
    """

    source = START_GROUP

    def __init__(self, client: Client, namespace: str, name: str = "ring", *, kind: str = "PyTorchJob") -> None:
        super().__init__(client, namespace)
        self.owner, self.kind = name, kind
        self.notes = {names.START_SIZE: "2", names.CONFIG: '{"timeoutAfterSeconds": 300}'}

    @override
    async def jobset(self, *jobs: Json, gated: bool = True, **more: Any) -> None:
        """Whatever owns the pods."""
        body = {"metadata": {"name": f"owner-{self.owner}"}}
        self.uid = (await self.client.create(CONFIGMAPS, body, self.namespace))["metadata"]["uid"]

    @override
    async def pod(
        self, index: int, job: str = "", number: int = 0, *, node: str = "", replicated: str = "", **status: Any
    ) -> str:
        """As the webhook would have it stored, or with the init containers of `job`, a list with blanks."""
        name, image = f"{self.owner}-{index}", "registry.test/app:1"
        inits = [{"name": it, "image": image} for it in (job or names.BARRIER_CONTAINER).split()]
        spec: dict[str, Any] = {"containers": [{"name": "main", "image": image}]}
        spec |= {"initContainers": inits} if inits else {}
        spec |= {"nodeName": node} if node else {}
        meta = {
            "name": name,
            "labels": {names.START_GROUP: "ring", "team": self.owner},
            "annotations": self.notes,
            "ownerReferences": [owner(self.kind, self.owner, self.uid)],
        }
        made = await self.client.create(PODS, {"metadata": meta, "spec": spec}, self.namespace)
        if status:
            await self._status(PODS, name, status, PatchType.STRATEGIC)
        return str(made["metadata"]["uid"])

    @override
    async def config_map(
        self,
        kind: VerdictKind | None = None,
        cause: str = "",
        message: str = "",
        since: float | None = None,
        *,
        attempt: int = 0,
        members: tuple[str, ...] = (),
        state: str = "",
    ) -> None:
        its = Generation(self.uid, attempt, 0)
        verdict = None if kind is None else Verdict(kind=kind, generation=its, cause=cause, message=message)
        clock = None if since is None else WaitingSince(generation=its, at=since)
        kept = Membership(attempt=attempt, members=frozenset(members))
        meta = {
            "name": self.config_map_name,
            "labels": {names.GATE: names.GATE_VALUE, names.START_GROUP: "ring"},
            "annotations": {names.JOBSET_UID: self.uid} | ({names.GANG_STATE: state} if state else {}),
            "ownerReferences": [owner(self.kind, self.owner, self.uid) | {"controller": False}],
        }
        body = {"metadata": meta, "data": verdict_codec.config_map_data(verdict, clock, kept)}
        await self.client.create(CONFIGMAPS, body, self.namespace)

    async def stored_config_map(self) -> Json:
        return await self.client.get(CONFIGMAPS, self.config_map_name, self.namespace)

    @property
    def gang(self) -> str:
        """Its name in keys and on the status page."""
        return gang_name("ring", self.uid)

    @property
    def config_map_name(self) -> str:
        return START_GROUP.config_map_name(self.gang)
