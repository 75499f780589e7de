"""Both API servers in plain HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.contract.apiserver.api import Gangs, RawApi, served_gangs
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
async def gangs(api: RawApi) -> AsyncIterator[Gangs]:
    """A custom kind with a status subresource, list maps and defaults."""
    async with served_gangs(api) as kind:
        yield kind
