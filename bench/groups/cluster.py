"""The control plane of the benchmark: with kube-scheduler, nodes without kubelets, an account for each client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.groups import plan
from bench.scale import Scale
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import NAMESPACES, NODES, PODGROUPS_PLUGINS, PODS
from tests.fakes.object_view import ObjectView
from tests.plane.audit import AuditedRequest
from tests.plane.kinds import install_pod_groups
from tests.plane.real import RealPlane

HOME = "default"
ACCOUNTS = ("floor", "ours")
"""Who opens the groups: their requests are written down."""
TOKEN_SECONDS = 86_400
CLEARERS = 4
"""Groups whose pods are being removed at once."""
CLEARING = 600.0
"""Seconds that it may take until the pods of a run are gone, and its namespace."""


@dataclass(frozen=True, slots=True)
class GroupBenchCluster:
    """A running one."""

    plane: RealPlane
    kubeconfigs: dict[str, str]
    """By account; "admin" is the loader's and the watcher's."""

    @property
    def access(self) -> Access:
        return Access(server=self.plane.server, ssl=self.plane.ssl)

    def requests(self, account: str, namespace: str) -> list[AuditedRequest]:
        """All that an account has asked for in a namespace, in the order of the answers."""
        return [one for one in self.plane.requests(account, HOME) if one.namespace == namespace]

    async def open_namespace(self, name: str) -> None:
        """A fresh one, ready for pods."""
        admin = self.plane.admin
        await asyncio.to_thread(admin.must, "POST", NAMESPACES.path(), {"metadata": {"name": name}})
        account = {"metadata": {"name": "default"}}
        path = f"{NAMESPACES.path()}/{name}/serviceaccounts"
        await asyncio.to_thread(admin.must, "POST", path, account, also=409)

    async def clear(self, name: str, *, wait: bool) -> None:
        """All that is in it goes. Returns when its pods are gone, or when nothing is left that anybody is busy with."""
        turn = asyncio.Semaphore(CLEARERS)

        async def remove(group: str) -> None:
            # Group by group: all in one request may take an API server longer than it gives any request.
            path = f"{PODS.path(name)}?gracePeriodSeconds=0&labelSelector={plan.GROUP}%3D{group}"
            async with turn:
                await asyncio.to_thread(self.plane.admin.must, "DELETE", path)

        async with Client(self.access) as client:
            async with ObjectView(client, PODS, name) as view:
                await asyncio.gather(*(remove(group) for group in {_group(pod) for pod in view.all()}))
                await view.until(lambda pods: not pods, CLEARING)
            await asyncio.to_thread(self.plane.admin.must, "DELETE", PODGROUPS_PLUGINS.path(name))
            async with ObjectView(client, NAMESPACES, field_selector=f"metadata.name={name}") as view:
                await client.delete(NAMESPACES, name)
                if wait:  # for the Events of all pods, too, which take a while
                    await view.until(lambda left: not left, CLEARING)


def _group(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["labels"][plan.GROUP])


@contextmanager
def prepared(scale: Scale, folder: Path) -> Iterator[GroupBenchCluster]:
    """With nodes, accounts and the CRDs of pod groups."""
    with RealPlane(scheduler=True, audited=True, prepare=install_pod_groups) as plane:
        for node in plan.nodes(scale):
            plane.admin.must("POST", NODES.path(), node)
        kubeconfigs = {name: str(_account(plane, name, folder)) for name in ACCOUNTS}
        yield GroupBenchCluster(plane, {**kubeconfigs, "admin": str(plane.kubeconfig)})


def _account(plane: RealPlane, name: str, folder: Path) -> Path:
    """A kubeconfig of a service account that may do everything."""
    accounts = f"/api/v1/namespaces/{HOME}/serviceaccounts"
    plane.admin.must("POST", accounts, {"metadata": {"name": name}})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": HOME}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"metadata": {"name": f"bench-{name}"}, "roleRef": role, "subjects": [subject]}
    plane.admin.must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    asked = {"spec": {"expirationSeconds": TOKEN_SECONDS}}
    token = json.loads(plane.admin.must("POST", f"{accounts}/{name}/token", asked))["status"]["token"]
    config = json.loads(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    file = folder / f"{name}.kubeconfig"
    file.write_text(json.dumps(config))
    file.chmod(0o600)
    return file
