"""The page's tests: in real time, since they ask over real sockets; and a namespace on the real plane."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest

from tests.plane.planes import Real, fresh_name


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"real": asyncio.new_event_loop}


@pytest.fixture
async def namespace_of_real(real_plane: Real) -> AsyncIterator[str]:
    """Fresh; asked to go afterwards."""
    name = fresh_name()
    await real_plane.make_namespace(name)
    yield name
    await real_plane.drop_namespace(name)
