"""A client of the real API server."""

from collections.abc import AsyncIterator

import pytest

from jobset_gate.kube.client import Client
from tests.plane.planes import Plane


@pytest.fixture
async def client(plane: Plane) -> AsyncIterator[Client]:
    async with plane.client() as opened:
        yield opened
