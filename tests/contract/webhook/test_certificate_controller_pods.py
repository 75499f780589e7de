"""The configuration for pods is kept trusted like the others, and may be missing: on both planes."""

from collections.abc import AsyncIterator

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import MUTATING_WEBHOOKS
from jobset_gate.settings import Groups
from tests.fakes.certificates import SERVICE, CertificateInstallation, installation
from tests.plane.planes import Plane
from webhook.certs.serving import self_signed
from webhook.registration import ServiceReference, pod_configuration


class World(CertificateInstallation):
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

    async def bundle(self) -> bytes:
        return (await self.bundles())[self.name]


@pytest.fixture
async def client(plane: Plane) -> AsyncIterator[Client]:
    async with plane.client() as made:
        yield made


@pytest.fixture
async def world(client: Client, namespace: str) -> AsyncIterator[World]:
    async with installation(client, namespace) as made:
        optional = ((MUTATING_WEBHOOKS, f"{names.POD_WEBHOOK}-{namespace}"),)
        yield World(client, namespace, made.which, made.now, made.terms, optional)


async def test_it_gets_the_same_ca_bundle(world: World) -> None:
    await world.put()
    try:
        replica = world.replica()
        assert await replica.reconcile() is None
        assert len(set((await world.bundles()).values())) == 1
        assert await world.trusts(replica)
    finally:
        await world.take_away()


async def test_without_the_configuration_for_pods_it_is_ready_and_it_publishes_to_a_later_one(world: World) -> None:
    """An uninstallation takes the configuration for pods away first, and an upgrade brings it."""
    replica = world.replica()
    assert await replica.reconcile() is None
    await world.put()
    try:
        assert await replica.reconcile() is None
        assert await world.bundle() == next(iter((await world.bundles()).values()))
    finally:
        await world.take_away()
    assert await replica.reconcile() is None


async def test_a_ca_bundle_of_another_client_is_corrected(world: World) -> None:
    replica = world.replica()
    await world.put(self_signed(["another"]).ca_bundle)
    try:
        assert await replica.reconcile() is None
        assert await world.trusts(replica)
    finally:
        await world.take_away()
