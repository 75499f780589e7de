"""Both API servers in plain HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from jobset_gate.kube.client import Client
from jobset_gate_demo.fake import jobset_crd
from tests.contract.apiserver.api import JOBSETS, RawApi
from tests.plane.planes import Plane


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
def plane(request: pytest.FixtureRequest) -> Plane:
    """Either one: the same test has to pass on both."""
    made: Plane = request.getfixturevalue(f"{request.param}_plane")
    return made


@pytest.fixture
async def api(plane: Plane, namespace: str) -> AsyncIterator[RawApi]:
    """Either plane, in a namespace of the test's own."""
    async with RawApi(plane.access, namespace) as talking:
        yield talking


@pytest.fixture
async def jobsets(client: Client) -> str:
    """The path of a custom kind, which is served."""
    await jobset_crd.install(client)
    return JOBSETS
