"""A namespace with a start group as it is stored in a cluster, and nobody who acts."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from jobset_gate import names
from jobset_gate.barrier.member import Membership
from jobset_gate.barrier.model import Generation, VerdictKind
from jobset_gate.kube.client import Client
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
    async def job(self, number: int = 0, replicated: str = "") -> str:
        return ""  # none makes them

    @override
    async def pod(
        self, index: int, job: str = "", number: int = 0, *, node: str = "", replicated: str = "", **status: Any
    ) -> str:
        """As the webhook would have it stored, or with the init containers of `job`, a list with blanks."""
        meta = {
            "name": f"{self.owner}-{index}",
            "labels": {names.START_GROUP: "ring", "team": self.owner},
            "annotations": self.notes,
            "ownerReferences": [owner(self.kind, self.owner, self.uid)],
        }
        inits = (job or names.BARRIER_CONTAINER).split()
        return await self._create_pod(meta, inits, {}, node=node, status=status)

    @override
    async def config_map(
        self,
        kind: VerdictKind | None = None,
        cause: str = "",
        message: str = "",
        since: float | None = None,
        *,
        members: tuple[str, ...] | None = None,
    ) -> None:
        """Of a decision all of its pods are the members, unless others are given."""
        if members is None:
            found = await self.client.list(PODS, self.namespace, label_selector=f"team={self.owner}")
            members = tuple(it["metadata"]["uid"] for it in found["items"] if kind)
        await self._create_config_map(
            self.gang,
            Generation(self.uid, 0, 0),
            (kind, cause, message),
            since,
            kept=Membership(attempt=0, members=frozenset(members)),
            labels={names.START_GROUP: "ring"},
            ownerReferences=[owner(self.kind, self.owner, self.uid) | {"controller": False}],
        )

    async def stored_config_map(self) -> Json:
        return await self.client.get(CONFIGMAPS, self.config_map_name, self.namespace)

    @property
    def gang(self) -> str:
        """Its name in keys and on the status page."""
        return gang_name("ring", self.uid)

    @property
    @override
    def config_map_name(self) -> str:
        return START_GROUP.config_map_name(self.gang)
