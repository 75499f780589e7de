"""A service account with few rights on a real API server."""

import asyncio

import pytest

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import CONFIGMAPS
from jobset_gate.runtime.decoder import WatchProblemKind
from tests.fakes.informer_harness import InformerHarness
from tests.fakes.service_accounts import access_by, allow, made_account
from tests.plane.planes import Real


async def test_a_right_that_is_granted_later_is_noticed(client: Client, real_plane: Real, namespace: str) -> None:
    access = access_by(await made_account(client, namespace, "gate"), real_plane)
    async with Client(access) as limited, asyncio.TaskGroup() as tasks:
        watched = InformerHarness(limited, scope=namespace, field_selector="metadata.name=a")
        run = tasks.create_task(watched.informer.run())
        await watched.reports(WatchProblemKind.LIST_FAILED)
        assert "is forbidden" in watched.informer.list_error
        assert f"{namespace}:gate" in watched.informer.list_error, "the text says who lacks the right"
        await allow(client, namespace, "gate", CONFIGMAPS, verbs=["list", "watch", "create"])
        await watched.informer.wait_synced()
        await limited.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"value": "1"}}, namespace)
        await watched.sees(a="1")
        assert watched.informer.list_error == ""
        with pytest.raises(Forbidden):
            await limited.list(CONFIGMAPS)
        run.cancel()
