"""The configuration for pods gets the caBundle like the others, and may be missing."""

from collections.abc import AsyncIterator

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import MUTATING_WEBHOOKS
from jobset_gate.settings import Groups
from tests.fakes.certificates import SERVICE, CertificateInstallation, installation
from webhook.certs.serving import self_signed
from webhook.registration import ServiceReference, pod_configuration


class InstallationForPods(CertificateInstallation):
    """An installation with groups enabled."""

    @property
    def name(self) -> str:
        return f"{names.POD_WEBHOOK}-{self.namespace}"

    async def put(self, ca_bundle: str | None = None) -> None:
        """The configuration, as the chart writes it."""
        where = ServiceReference(self.namespace, SERVICE)
        made = pod_configuration(Groups(), service=where, suffix=f"-{self.namespace}", ca_bundle=ca_bundle)
        made["webhooks"][0]["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}
        await self.client.create(MUTATING_WEBHOOKS, made)

    async def take_away(self) -> None:
        await self.client.delete(MUTATING_WEBHOOKS, self.name)


@pytest.fixture
async def installed(client: Client, namespace: str) -> AsyncIterator[InstallationForPods]:
    async with installation(client, namespace) as made:
        optional = ((MUTATING_WEBHOOKS, f"{names.POD_WEBHOOK}-{namespace}"),)
        yield InstallationForPods(client, namespace, made.which, made.now, made.terms, optional)


async def test_the_configuration_for_pods_is_optional_and_gets_the_same_ca_bundle(
    installed: InstallationForPods,
) -> None:
    """An uninstallation deletes it first, and an upgrade may create it, with any caBundle."""
    replica = installed.replica()
    assert await replica.reconcile() is None
    for bundle in (None, self_signed(["another"]).ca_bundle):
        await installed.put(bundle)
        try:
            assert await replica.reconcile() is None
            assert len(set((await installed.bundles()).values())) == 1
            assert await installed.trusts(replica)
        finally:
            await installed.take_away()
        assert await replica.reconcile() is None
