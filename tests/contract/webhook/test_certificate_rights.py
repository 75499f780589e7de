"""The least rights of the certificate controller, on a real API server, and its messages where they are missing."""

import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS, Resource
from tests.contract.webhook.test_certificate_controller import DAY
from tests.fakes.certificates import SECRET, CertificateInstallation
from tests.fakes.eventually import eventually
from tests.plane.planes import Real

pytestmark = pytest.mark.real
RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(RBAC, "v1", "roles", "Role")
ROLE_BINDINGS = Resource(RBAC, "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES = Resource(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
LOOK = ["get", "list", "watch"]
SECRET_VERBS = [*LOOK, "create", "patch"]
BUNDLE_VERBS = [*LOOK, "patch"]
Json = dict[str, Any]


@asynccontextmanager
async def account(
    real: Real, installed: CertificateInstallation, *, secret: list[str] | None = None, bundle: list[str] | None = None
) -> AsyncIterator[Client]:
    """A client that may do this to the CA Secret and to the two configurations, by their names, and nothing else."""
    admin, namespace = installed.client, installed.namespace
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    both = ((MUTATING_WEBHOOKS, installed.which[0][1]), (VALIDATING_WEBHOOKS, installed.which[1][1]))
    wide = [rule(resource, [name], bundle) for resource, name in both if bundle]
    narrow = [rule(SECRETS, [SECRET], secret)] if secret else []
    meta = {"metadata": {"name": f"kept-{namespace}"}}
    await admin.create(CLUSTER_ROLES, meta | {"rules": wide})
    await admin.create(CLUSTER_ROLE_BINDINGS, meta | bound("ClusterRole", meta, subject))
    await admin.create(ROLES, meta | {"rules": narrow}, namespace)
    await admin.create(ROLE_BINDINGS, meta | bound("Role", meta, subject), namespace)
    try:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = (await admin.post(path, asked))["status"]["token"]

        async def tell() -> str:
            return str(token)

        context = ssl.create_default_context(cafile=str(real.running.layout.certificates.ca))
        async with Client(Access(server=real.access.server, ssl=context, token=tell)) as client:
            yield client
    finally:
        for resource in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS):
            with suppress(NotFound):
                await admin.delete(resource, f"kept-{namespace}")


def rule(resource: Resource, names: list[str], verbs: list[str] | None) -> Json:
    return {"apiGroups": [resource.group], "resources": [resource.plural], "resourceNames": names, "verbs": verbs}


def bound(kind: str, role: Json, subject: Json) -> Json:
    return {"roleRef": {"apiGroup": RBAC, "kind": kind, "name": role["metadata"]["name"]}, "subjects": [subject]}


@pytest.mark.parametrize(
    ("secret", "bundle", "said"),
    [
        (None, BUNDLE_VERBS, 'there is no certificate yet; 403 Forbidden: .* cannot get resource "secrets"'),
        (LOOK, BUNDLE_VERBS, f"; Secret [a-z0-9-]+/{SECRET} cannot be written: 403 Forbidden: "),
        (SECRET_VERBS, None, "the webhook configurations have not been read yet; 403 Forbidden: "),
        (SECRET_VERBS, LOOK, "zz-jobset-gate-[a-z0-9-]+: has no caBundle; the caBundle cannot be written: 403"),
    ],
    ids=["Secret read", "Secret written", "configurations read", "caBundle written"],
)
async def test_what_it_may_not_do_is_reported(
    real_plane: Real, installed: CertificateInstallation, secret: list[str] | None, bundle: list[str] | None, said: str
) -> None:
    async with account(real_plane, installed, secret=secret, bundle=bundle) as limited:
        replica = installed.replica(limited)
        message = await replica.reconcile()
        assert message is not None
        assert re.search(said, message)
        assert (replica.number("jobset_gate_certificate_check_failures_total") or 0) > 0
        if bundle is LOOK:
            await installed.replica().reconcile()
            assert await replica.reconcile() is None, "another has written it, which will do"


async def test_a_trusted_webhook_stays_ready_when_rights_are_taken_away(
    real_plane: Real, installed: CertificateInstallation
) -> None:
    """Else all replicas would leave the Service at once, and every gated JobSet would be refused."""
    async with account(real_plane, installed, secret=SECRET_VERBS, bundle=BUNDLE_VERBS) as limited:
        replica = installed.replica(limited)
        assert await replica.reconcile() is None
        await installed.client.delete(CLUSTER_ROLE_BINDINGS, f"kept-{installed.namespace}")
        await eventually(lambda: forbidden(limited, installed))
        assert await replica.reconcile() is None
        assert (replica.number("jobset_gate_certificate_check_failures_total") or 0) > 0
        installed.now.forward(8 * DAY)
        message = await replica.reconcile()
        assert message is not None
        assert message.startswith("the serving certificate is valid from")


async def forbidden(client: Client, installed: CertificateInstallation) -> bool:
    """The API server takes a moment to learn of a change of rights."""
    try:
        await client.get(*installed.which[0])
    except Forbidden:
        return True
    return False
