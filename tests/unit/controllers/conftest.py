"""The controllers' parts on virtual time, against the memory of an API server instead of a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest

from jobset_gate_demo.fake.clock import VirtualClock, VirtualLoop
from tests.fakes.call_blocker import CallBlocker
from tests.fakes.memory_api import Api
from tests.fakes.memory_client import MemoryClient
from tests.fakes.scripted_server import ScriptedServer


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual": VirtualLoop}


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def api_calls() -> CallBlocker:
    """Open, unless the test shuts them."""
    return CallBlocker()


@pytest.fixture
def memory(api: Api, api_calls: CallBlocker) -> MemoryClient:
    return MemoryClient(api, api_calls)


@pytest.fixture
async def clock() -> VirtualClock:
    """Seconds since the epoch, by the loop's virtual time."""
    return VirtualClock(asyncio.get_running_loop())


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as scripted:
        yield scripted
