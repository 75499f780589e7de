"""Connections to a real API server, over TLS."""

import asyncio
import gc
import warnings

import pytest

from jobset_gate.kube.resources import PODS
from tests.plane.planes import Real

pytestmark = pytest.mark.real


async def test_a_watch_that_is_left_has_no_open_connection_after_its_client(real_plane: Real) -> None:
    """Over TLS, closing waits for the server's answer; the loop of a command ends before it."""

    async def watch() -> None:
        async with (
            real_plane.client() as client,
            client.watch(PODS, "default", resource_version="", timeout_seconds=50),
        ):
            pass

    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        await asyncio.to_thread(asyncio.run, watch())
        gc.collect()
    assert [str(it.message) for it in caught] == []
