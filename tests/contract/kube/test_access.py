"""Who we may be to a real API server: a service account with few rights, by token, by plugin, through a proxy."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from jobset_gate.kube.access import from_kubeconfig
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import CONFIGMAPS, Resource
from jobset_gate.runtime.decoder import WatchProblemKind
from tests.fakes.informer_harness import InformerHarness, running_informer
from tests.fakes.tunnel_proxy import TunnelProxy
from tests.plane.planes import Real

pytestmark = [pytest.mark.real]

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")


class Tenant:
    """A service account in a namespace of its own, and the admin who can give it rights."""

    def __init__(self, plane: Real, admin: Client, namespace: str, folder: Path) -> None:
        self.plane, self.admin, self.namespace, self.folder = plane, admin, namespace, folder

    async def token(self) -> str:
        """Of an account that is made for it."""
        await self.admin.create(ACCOUNTS, {"metadata": {"name": "gate", "namespace": self.namespace}})
        path = ACCOUNTS.path(self.namespace, "gate", "token")
        made = await self.admin.post(path, {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"})
        return str(made["status"]["token"])

    async def allow(self) -> None:
        """To read and write ConfigMaps, in this namespace only."""
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create"]}]
        meta = {"name": "gate", "namespace": self.namespace}
        await self.admin.create(ROLES, {"metadata": meta, "rules": rules})
        role = {"apiGroup": ROLES.group, "kind": "Role", "name": "gate"}
        subject = {"kind": "ServiceAccount", "name": "gate", "namespace": self.namespace}
        await self.admin.create(BINDINGS, {"metadata": meta, "roleRef": role, "subjects": [subject]})

    def kubeconfig(self, user: dict[str, Any], **cluster: str) -> str:
        config = json.loads(self.plane.kubeconfig.read_text())
        config["users"][0]["user"] = user
        config["clusters"][0]["cluster"] |= cluster
        path = self.folder / "kubeconfig"
        path.write_text(json.dumps(config))
        return str(path)


@pytest.fixture
def tenant(real_plane: Real, client: Client, namespace: str, tmp_path: Path) -> Tenant:
    return Tenant(real_plane, client, namespace, tmp_path)


def thing(namespace: str, name: str, value: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "data": {"value": value}}


async def test_a_right_that_is_granted_later_is_noticed(tenant: Tenant) -> None:
    access = await from_kubeconfig(tenant.kubeconfig({"token": await tenant.token()}))
    async with Client(access) as client, asyncio.TaskGroup() as tasks:
        watched = InformerHarness(client, scope=tenant.namespace, field_selector="metadata.name=a")
        run = tasks.create_task(watched.informer.run())
        await watched.reports(WatchProblemKind.LIST_FAILED)
        assert "is forbidden" in watched.informer.list_error
        assert f"{tenant.namespace}:gate" in watched.informer.list_error, "the text says who lacks the right"
        await tenant.allow()
        await watched.informer.wait_synced()
        await client.create(CONFIGMAPS, thing(tenant.namespace, "a", "1"))
        await watched.sees(a="1")
        assert watched.informer.list_error == ""
        with pytest.raises(Forbidden):
            await client.list(CONFIGMAPS)
        run.cancel()


async def test_lists_writes_and_watches_go_through_a_proxy_that_is_named(tenant: Tenant) -> None:
    await tenant.allow()
    async with TunnelProxy() as tunnel:
        access = await from_kubeconfig(tenant.kubeconfig({"token": await tenant.token()}, **{"proxy-url": tunnel.url}))
        async with Client(access) as client, running_informer(client, scope=tenant.namespace) as watched:
            before = watched.values
            await client.create(CONFIGMAPS, thing(tenant.namespace, "a", "1"))
            await watched.sees(**before, a="1")
        assert tunnel.targets == {tenant.plane.running.server.removeprefix("https://")}
