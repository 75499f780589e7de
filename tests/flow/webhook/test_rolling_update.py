"""Fault 16 on a real API server: the webhook's processes rolled and killed while JobSets are created.

The processes are the shipped command with its own CA, behind one Service, as the chart starts them.
"""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from signal import SIGKILL, SIGTERM
from urllib.parse import urlsplit

import pytest

from controllers.barrier import crd_patcher
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from jobset_gate_demo.fake import jobset_crd
from tests.fakes.admission_server import WEBHOOK_TIMEOUT, limited
from tests.fakes.certificates import SECRET, SERVICE
from tests.fakes.service_process import ServiceProcess, running_service
from tests.fakes.webhook_traffic import Forwarder, JobSetTraffic, service, traffic, until_webhook_called
from tests.plane.planes import Real, fresh_name
from webhook import registration

pytestmark = pytest.mark.real
CREATIONS = 1000 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 300


@dataclass
class Deployment:
    """Processes of the webhook behind a Service."""

    real: Real
    namespace: str
    forwarder: Forwarder
    stack: AsyncExitStack
    pods: list[tuple[ServiceProcess, int]] = field(default_factory=list)
    leaving: list[ServiceProcess] = field(default_factory=list)
    """Those that were asked to stop."""

    async def start(self) -> None:
        """One more; it gets calls as soon as it is ready, as a Service does it."""
        where = f"--service={self.namespace}/{SERVICE}:{self.forwarder.port}"
        kubeconfig = f"--kubeconfig={self.real.kubeconfig}"
        # Long enough for some creations on a slow machine.
        ends = ("--port=0", "--shutdown-delay=20")
        pod = await self.stack.enter_async_context(
            running_service("webhook", f"--own-ca={SECRET}", where, kubeconfig, *ends)
        )
        port = urlsplit((await pod.until("webhook listens"))["url"]).port
        assert port is not None
        await pod.until("the certificate is trusted")
        self.pods.append((pod, port))
        self.forwarder.endpoints.append(port)

    async def replace(self, users: JobSetTraffic) -> None:
        """A rolling update of one: first the new one, then the old one stops, and the Service learns of it later."""
        await self.start()
        old, port = self.pods.pop(0)
        old.send(SIGTERM)
        await users.until(5)
        self.forwarder.endpoints.remove(port)
        self.leaving.append(old)

    async def kill(self, users: JobSetTraffic) -> None:
        """One is gone in the middle of its work, and calls go on being sent there for a while."""
        old, port = self.pods.pop(0)
        await old.stop(SIGKILL)
        await users.until(10)
        self.forwarder.endpoints.remove(port)


@pytest.fixture
async def client(real_plane: Real) -> AsyncIterator[Client]:
    async with real_plane.client() as made:
        await jobset_crd.install(made)
        await crd_patcher.extend_crd(made)
        yield made


@pytest.fixture
async def deployment(real_plane: Real, client: Client) -> AsyncIterator[Deployment]:
    """Two replicas. The configurations are those of an installation, for the JobSets of one namespace."""
    namespace = fresh_name()
    await real_plane.make_namespace(namespace)
    async with service(client, namespace) as forwarder, AsyncExitStack() as stack:
        where = registration.ServiceReference(namespace, SERVICE, forwarder.port)
        resources = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
        for resource, body in zip(
            resources, registration.configurations(service=where, timeout_seconds=WEBHOOK_TIMEOUT), strict=True
        ):
            name = body["metadata"]["name"]
            await client.patch(
                resource, name, body=limited(body, namespace), patch=PatchType.APPLY, field_manager="helm", force=True
            )
            stack.push_async_callback(client.delete, resource, name)
        replicas = Deployment(real_plane, namespace, forwarder, stack)
        await replicas.start()
        await replicas.start()
        await until_webhook_called(client, namespace)
        yield replicas
    await real_plane.delete_namespace(namespace)  # hundreds of JobSets: in the background


async def test_a_rollout_fails_no_creation_and_lets_none_through(deployment: Deployment, client: Client) -> None:
    async with traffic(client, deployment.namespace) as users:
        await users.until(50)
        for _ in range(2):
            await deployment.replace(users)
        await users.until(max(50, CREATIONS - users.made))
        assert [await one.ended() for one in deployment.leaving] == [0, 0]
    assert users.failed == []
    assert users.uninjected == []
    assert users.made >= CREATIONS


async def test_a_killed_webhook_costs_a_second_try_at_most(deployment: Deployment, client: Client) -> None:
    """Calls in flight fail with it, and those sent to where it was; none is let through without the gate."""
    async with traffic(client, deployment.namespace, retries=20) as users:
        await users.until(50)
        for _ in range(2):
            await deployment.kill(users)
            await deployment.start()
        await users.until(50)
    assert users.failed == []
    assert users.uninjected == []
