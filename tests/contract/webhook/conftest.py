"""A client of the plane, and an installation whose certificates are managed."""

from collections.abc import AsyncIterator

import pytest

from jobset_gate.kube.client import Client
from tests.fakes.certificates import CertificateInstallation, installation
from tests.plane.planes import Plane


@pytest.fixture
async def client(plane: Plane) -> AsyncIterator[Client]:
    async with plane.client() as made:
        yield made


@pytest.fixture
async def installed(client: Client, namespace: str) -> AsyncIterator[CertificateInstallation]:
    async with installation(client, namespace) as made:
        yield made
