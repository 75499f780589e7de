"""Service accounts of a real API server: their tokens, and what they may do in their namespace."""

import ssl
from typing import Any

from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import Resource
from tests.plane.planes import Real

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")


async def token_of(client: Client, namespace: str, name: str) -> str:
    asked = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
    made = await client.post(ACCOUNTS.path(namespace, name, "token"), asked)
    return str(made["status"]["token"])


async def made_account(client: Client, namespace: str, name: str) -> str:
    """The token of an account that is made for it, without any right."""
    await client.create(ACCOUNTS, {"metadata": {"name": name}}, namespace)
    return await token_of(client, namespace, name)


async def allow(client: Client, namespace: str, name: str, *resources: Resource, verbs: list[str]) -> None:
    """Gives the account these rights in its namespace."""
    rules = [{"apiGroups": [it.group], "resources": [it.plural], "verbs": verbs} for it in resources]
    await client.create(ROLES, {"metadata": {"name": name}, "rules": rules}, namespace)
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    role: dict[str, Any] = {"apiGroup": ROLES.group, "kind": "Role", "name": name}
    await client.create(BINDINGS, {"metadata": {"name": name}, "subjects": [subject], "roleRef": role}, namespace)


def access_by(token: str, plane: Real) -> Access:
    """Of a client that has this token and no certificate."""

    async def given() -> str:
        return token

    trusted = ssl.create_default_context(cafile=str(plane.running.layout.certificates.ca))
    return Access(server=plane.access.server, ssl=trusted, token=given)
