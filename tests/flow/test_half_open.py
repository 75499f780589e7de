"""A watch that has fallen silent, on either plane: nothing is written again and again for what is gone (A10)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from controllers.manager import Manager
from jobset_gate import names
from jobset_gate.fake import manifests
from jobset_gate.fake.view import ObjectView
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, Resource
from tests.flow.environment import PATIENCE, Environment

GANG = "gang"


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Once it is set, the controller's watch of JobSets brings nothing more: half open, as a lost peer leaves it."""
    said = asyncio.Event()
    original = Client.watch

    async def until_silent(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines:
            if said.is_set():
                await asyncio.Event().wait()
            yield line

    @asynccontextmanager
    async def watch(self: Client, resource: Resource, *args: Any, **more: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        async with original(self, resource, *args, **more) as lines:
            ours = resource == JOBSETS and self.user_agent == names.PROGRAM
            yield until_silent(lines) if ours else lines

    monkeypatch.setattr(Client, "watch", watch)
    return said


def requests(manager: Manager, code: str, method: str, resource: str) -> float:
    """So many such answers the controller has had."""
    return sum(
        sample.value
        for family in manager.options.registry.collect()
        for sample in family.samples
        if sample.name == "rest_client_requests_total"
        and sample.labels["code"] == code
        and sample.labels["method"] == method
        and sample.labels.get("resource", resource) == resource
    )


async def test_no_configmap_is_made_again_for_a_jobset_of_whose_end_the_watch_does_not_tell(
    silent: asyncio.Event, stage: Environment
) -> None:
    await stage.apply(manifests.gang(GANG, jobs=1, pods=2, timeout=300))
    await stage.until_condition(GANG, names.REASON_STARTED)
    (manager,) = stage.replicas
    made = requests(manager, "201", "POST", "configmaps")
    silent.set()
    await stage.client.delete(JOBSETS, GANG, stage.namespace, propagation="Background")
    async with ObjectView(stage.client, CONFIGMAPS, stage.namespace) as maps:
        await maps.until(
            lambda all_: all(it["metadata"]["name"] != names.config_map_name(GANG) for it in all_), PATIENCE
        )
    async with asyncio.timeout(PATIENCE):
        while requests(manager, "404", "GET", "jobsets") < 3:  # noqa: ASYNC110 - so often it has looked at the gang since
            await asyncio.sleep(0.05)
    assert requests(manager, "201", "POST", "configmaps") == made
    assert await stage.config_map(GANG) is None
