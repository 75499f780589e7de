"""Fault 17 on a real API server that finds the webhooks by their Service: renewed, rotated, healed, under traffic."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import SECRETS
from jobset_gate.settings import Settings
from tests.fakes.background import in_background
from tests.fakes.certificates import SECRET, CertificateInstallation, VirtualDatetime, WebhookReplica, installation
from tests.fakes.eventually import PATIENCE
from tests.fakes.webhook_traffic import service, traffic, until_webhook_called
from webhook.certs.ca import certificates, is_signed_by
from webhook.certs.rotation import RotationPolicy
from webhook.server import serve

pytestmark = pytest.mark.real
HOUR = timedelta(hours=1)


class Shifted(VirtualDatetime):
    """Goes as real time does, so many hours away from it."""

    def __init__(self, hours: float) -> None:
        self.by = timedelta(hours=hours)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.by


@dataclass
class Cluster:
    """Two webhooks with certificates of their own behind one Service."""

    installed: CertificateInstallation
    clock: Shifted
    replicas: list[WebhookReplica] = field(default_factory=list)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                if holds():
                    return
                await asyncio.sleep(0.02)  # the controllers work in the background

    async def cas(self) -> tuple[x509.Certificate, ...]:
        return certificates(next(iter((await self.installed.bundles()).values())))

    def signed_by(self, ca: x509.Certificate) -> int:
        """How many serve a certificate of this CA."""
        return sum(is_signed_by(one.slot.chain[0], ca) for one in self.replicas)


@pytest.fixture
async def cluster(client: Client, namespace: str) -> AsyncIterator[Cluster]:
    """All was made 17 hours ago. A leaf lives for 18 hours, a CA for 24."""
    terms = RotationPolicy(ca_life=24 * HOUR, leaf_life=18 * HOUR, settling=timedelta(seconds=5))
    async with service(client, namespace) as forwarder, AsyncExitStack() as stack:
        installed = await stack.enter_async_context(installation(client, namespace, port=forwarder.port, terms=terms))
        clock = installed.now = Shifted(-17)
        cluster = Cluster(installed, clock)
        for _ in range(2):
            one = installed.replica()
            server = await serve(Settings(), tls=one.slot, ready=one.certificates.not_ready_reason, metrics=one.metrics)
            stack.push_async_callback(server.stop)
            forwarder.endpoints.append(int(server.url.rsplit(":", 1)[1]))
            cluster.replicas.append(one)
            await stack.enter_async_context(in_background(one.certificates.run()))
        await until_webhook_called(client, namespace)
        yield cluster


async def test_no_call_fails_while_certificates_are_renewed_and_the_ca_is_rotated(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    (old,) = await cluster.cas()
    first = [one.slot.chain[0] for one in cluster.replicas]
    async with traffic(client, namespace) as users:
        await users.until(20)
        cluster.clock.by = -4 * HOUR  # two thirds of the leaves' lives are over
        await cluster.until(lambda: all(one.slot.chain[0] not in first for one in cluster.replicas))
        assert cluster.signed_by(old) == 2
        await users.until(50)
        cluster.clock.by = 0 * HOUR  # and two thirds of the CA's
        await cluster.until(lambda: cluster.signed_by(old) == 0)
        assert len(await cluster.cas()) == 2
        await users.until(50)
        over = (datetime.now(UTC) - HOUR).strftime("%Y-%m-%dT%H:%M:%SZ")  # the last of the old leaves has run out
        body = {"metadata": {"annotations": {names.PREVIOUS_CA_UNTIL: over}}}
        await client.patch(SECRETS, SECRET, namespace, body=body, patch=PatchType.MERGE)
        async with asyncio.timeout(PATIENCE):
            while old in await cluster.cas():
                await users.until(1)
        await users.until(50)
    (new,) = await cluster.cas()
    assert new != old
    assert users.failed == []
    assert users.uninjected == []
    assert users.made >= 170
