"""An installation whose certificates are managed."""

from collections.abc import AsyncIterator

import pytest

from jobset_gate.kube.client import Client
from tests.fakes.certificates import CertificateInstallation, installation


@pytest.fixture
async def installed(client: Client, namespace: str) -> AsyncIterator[CertificateInstallation]:
    async with installation(client, namespace) as made:
        yield made
