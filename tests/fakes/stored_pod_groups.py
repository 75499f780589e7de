"""A namespace with groups in all sorts of states and nobody who looks after them, on either plane."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from controllers.podgroups import crds
from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import AlreadyExists
from jobset_gate.kube.resources import CONFIGMAPS, CRDS, LEASES, POD_GROUPS, PODS
from jobset_gate.podgroups.decode import format_opened
from jobset_gate.podgroups.model import FLAVOR_OF, Format, PodGroupKey, group_label
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState, encode_record
from tests.fakes.eventually import PATIENCE
from tests.fakes.object_view import ObjectView
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.objects import record
from tests.fakes.podgroups.snapshots import timestamp
from tests.plane.planes import Real

Json = dict[str, Any]
NO_NODE: Json = {"nodeSelector": {"nowhere.test": "yes"}}
"""No node has it: what other tests leave on a plane is no room for these pods."""


async def install_pod_group_crds(client: Client) -> None:
    async with ObjectView(client, CRDS, None) as view:
        # Those of another module's tests may be going just now.
        await view.until(lambda found: not any(it["metadata"].get("deletionTimestamp") for it in found), PATIENCE)
        for api in crds.GROUPS.values():
            with suppress(AlreadyExists):
                await client.create(CRDS, crds.manifest(api))
        await view.until(lambda found: sum(map(_served, found)) == len(crds.GROUPS), PATIENCE)


def _served(crd: Json) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    established = any(it["type"] == "Established" and it["status"] == "True" for it in conditions)
    return crd["metadata"]["name"] in crds.GROUPS and established


class StoredPodGroups:
    """The namespace; groups are put into it one by one."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace

    def key(self, name: str, way: Format = Format.SCHEDULER_PLUGINS) -> PodGroupKey:
        return PodGroupKey(flavor=FLAVOR_OF[way], namespace=self.namespace, name=name)

    async def group(
        self, name: str, minimum: int, way: Format = Format.SCHEDULER_PLUGINS, decided: AdmissionRecord | None = None
    ) -> None:
        """Its PodGroup, with what was decided of it."""
        made = manifests.pod_group(name, minimum, way)
        if decided is not None:
            made["metadata"]["annotations"][names.POD_GROUP_RECORD] = encode_record(decided)
        await self.client.create(POD_GROUPS[manifests.API_GROUP[way]], made, self.namespace)

    def decided(
        self, name: str, way: Format = Format.SCHEDULER_PLUGINS, minimum: int = 2, **more: Any
    ) -> AdmissionRecord:
        """A decision of now on this group."""
        made = record((self.key(name, way), 1), minimum=minimum, **more)
        return msgspec.structs.replace(made, at=time.time())

    async def decide(self, name: str, minimum: int, way: Format = Format.SCHEDULER_PLUGINS, **more: Any) -> None:
        """A decision, written on its PodGroup as the controller does it."""
        notes = {names.POD_GROUP_RECORD: encode_record(self.decided(name, way, minimum, **more))}
        kind, body = POD_GROUPS[manifests.API_GROUP[way]], {"metadata": {"annotations": notes}}
        await self.client.patch(kind, name, self.namespace, body=body, patch=PatchType.MERGE)

    async def record(self, name: str, decided: AdmissionRecord, way: Format = Format.ALIBABA) -> None:
        key = self.key(name, way)
        notes = {names.POD_GROUP_KEY: f"{key.flavor}/{key.namespace}/{key.name}"}
        meta = {
            "name": names.POD_GROUP_CONFIG_MAP_PREFIX + group_label(key),
            "labels": {names.POD_GROUP_RECORD: names.POD_GROUP_RECORD_VALUE},
            "annotations": notes,
        }
        await self.client.create(
            CONFIGMAPS, {"metadata": meta, "data": {names.KEY_RECORD: encode_record(decided)}}, self.namespace
        )

    async def held(
        self, group: str, *pods: str, way: Format = Format.SCHEDULER_PLUGINS, minimum: int | None = None
    ) -> None:
        for name in pods:
            made = manifests.pod(name, group, way, minimum, **NO_NODE)
            await self.client.create(PODS, manifests.held(made, self.namespace, group, way), self.namespace)

    async def running(self, group: str, *pods: str, way: Format, minimum: int | None = None) -> None:
        """Pods that were opened in the first generation, and run."""
        for name in pods:
            made = manifests.pod(name, group, way, minimum, nodeName="far")
            made["metadata"]["labels"][names.POD_GROUP_LABEL] = group_label(self.key(group, way))
            made["metadata"]["annotations"][names.POD_GROUP_OPENED] = format_opened(1, time.time())
            await self.client.create(PODS, made, self.namespace)
            body = {"status": {"phase": "Running"}}
            await self.client.patch(
                PODS, name, self.namespace, body=body, patch=PatchType.STRATEGIC, subresource="status"
            )

    async def status(self, name: str, minimum: int, reason: str, message: str) -> None:
        """A gathered group whose reason to wait the controller has written."""
        await self.group(name, minimum)
        await self.held(name, f"{name}-0")
        shown = {"type": names.POD_GROUP_CONDITION, "status": "False", "reason": reason, "message": message}
        kind = POD_GROUPS[names.PLUGINS_GROUP]
        body = {"status": {"conditions": [shown]}}
        await self.client.patch(kind, name, self.namespace, body=body, patch=PatchType.MERGE, subresource="status")

    async def fill(self) -> None:
        """One group in each of the states that there are without anybody who acts."""
        await self.group("a-room", 2)
        await self.held("a-room", "a-0", "a-1")
        await self.group("b-small", 3, Format.KEP_24)
        await self.held("b-small", "b-0", way=Format.KEP_24)
        await self.held("c-lost", "c-0")
        await self.held("d-torn", "d-0", way=Format.KOORDINATOR_ANNOTATIONS, minimum=2)
        await self.held("d-torn", "d-1", way=Format.KOORDINATOR_ANNOTATIONS, minimum=3)
        await self.running("e-fine", "e-0", "e-1", way=Format.ALIBABA, minimum=2)
        await self.record("e-fine", self.decided("e-fine", Format.ALIBABA, satisfied=time.time()))
        way = Format.KOORDINATOR_POD_GROUP
        back = self.decided("f-back", way, stage=AdmissionState.ROLLING_BACK, why="1 of 2 pods were bound within 60s")
        await self.group("f-back", 2, way, back)
        await self.running("f-back", "f-0", way=way)
        await self.group("g-none", 4)


async def lease(client: Client, namespace: str, holder: str = "one", ago: float = 0.0) -> None:
    """The controller's Lease as its holder has renewed it so long ago."""
    moment = timestamp(time.time() - ago).replace("Z", ".000000Z")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": moment, "acquireTime": moment}
    await client.create(LEASES, {"metadata": {"name": names.LEASE}, "spec": spec}, namespace)


async def kubeconfig_of(plane: Real, namespace: str, rules: list[Json], folder: Path) -> Path:
    """Of a user who may do only that, in this namespace."""
    role: Json = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "user"}}
    subject = {"kind": "ServiceAccount", "name": "user", "namespace": namespace}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "user"}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "user"}}
    binding = {**role, "kind": "RoleBinding", "subjects": [subject], "roleRef": ref}
    for one in (account, {**role, "rules": rules}, binding):
        await plane.kubectl("apply", "-n", namespace, "-f", "-", stdin=one)
    ran = await plane.kubectl("create", "token", "user", "-n", namespace)
    config = json.loads(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": ran.stdout.strip()}
    config["contexts"][0]["context"]["namespace"] = namespace
    path = folder / "user.kubeconfig"
    path.write_text(json.dumps(config))
    return path
