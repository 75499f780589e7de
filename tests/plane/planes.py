"""A control plane as tests see it: the same words for the real one and the embedded one."""

import asyncio
import os
import secrets
from typing import TYPE_CHECKING, TypeAlias

from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import (
    CONFIGMAPS,
    DEPLOYMENTS,
    JOBS,
    JOBSETS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCEQUOTAS,
    STATEFUL_SETS,
)
from tests.plane.kubectl import Kubectl
from tests.plane.real import RealPlane

if TYPE_CHECKING:
    from tests.plane.embedded import Embedded


_WORKLOADS = (DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS, REPLICATION_CONTROLLERS, JOBSETS, JOBS)
_WATCHED = (*POD_GROUPS.values(), RESOURCEQUOTAS)
_NOW = "?gracePeriodSeconds=0&propagationPolicy=Background"
_BUT_THE_CA = "?fieldSelector=metadata.name!=kube-root-ca.crt"


class Real:
    """A real control plane. Tests share it: each stays in its namespaces and clears away what is cluster-wide."""

    name = "real"

    def __init__(self, running: RealPlane) -> None:
        self.running = running
        self.kubeconfig = running.kubeconfig
        home = running.kubeconfig.parent / f"kubectl-{os.getpid()}"
        self.kubectl = Kubectl(running.binaries["kubectl"], running.kubeconfig, home)

    @property
    def access(self) -> Access:
        return Access(server=self.running.server, ssl=self.running.ssl)

    def client(self, user_agent: str = "test") -> Client:
        return Client(self.access, user_agent=user_agent)

    async def make_namespace(self, name: str) -> None:
        """With the service account that pods need, so that nobody has to wait for the controller that would make it."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        admin = self.running.admin
        await asyncio.to_thread(admin.must, "POST", "/api/v1/namespaces", namespace)
        await asyncio.to_thread(admin.must, "POST", f"/api/v1/namespaces/{name}/serviceaccounts", account, also=409)

    async def drop_namespace(self, name: str) -> None:
        """What a controller would look at goes, pods at once since no kubelet is there to end them.

        The namespace itself stays, until the whole plane goes: to delete one, its controller makes about a hundred
        requests, more than most tests do.
        """
        paths = [resource.path(name) + _NOW for resource in (*_WORKLOADS, PODS, *_WATCHED)]
        try:
            await asyncio.to_thread(self.running.admin.delete, [*paths, CONFIGMAPS.path(name) + _BUT_THE_CA])
        except OSError:  # too many objects for the time of one request
            await self.delete_namespace(name)

    async def delete_namespace(self, name: str) -> None:
        """With all that lies in it, in the background."""
        pods = f"{PODS.path(name)}?gracePeriodSeconds=0"  # it waits for the last of its pods
        await asyncio.to_thread(self.running.admin.delete, [NAMESPACES.path(name=name), pods])


Plane: TypeAlias = "Real | Embedded"
"""Either one, in the same words."""


def fresh_name() -> str:
    """A namespace's name that was never used before on a plane."""
    return f"test-{secrets.token_hex(5)}"
