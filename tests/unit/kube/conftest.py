"""Virtual time for all tests here but those that wait for another process, such as a plane's."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest

from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate_demo.fake.clock import VirtualLoop
from tests.fakes.scripted_server import ScriptedServer


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if {"plane", "real_time"} & set(getattr(item, "fixturenames", ())):
        return {"real": asyncio.new_event_loop}
    return {"virtual": VirtualLoop}


@pytest.fixture
def real_time() -> None:
    """For a test that waits for another process."""


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    """An API server that does what the test says."""
    async with ScriptedServer() as scripted:
        yield scripted


@pytest.fixture
async def client(server: ScriptedServer) -> AsyncIterator[Client]:
    """A client of `server`."""
    async with Client(Access(server.url)) as opened:
        yield opened
