"""Admission webhooks over TLS: the same assertions against the embedded and the real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.contract.apiserver.api import CONFIGMAPS, PATIENCE, Json, RawApi, config_map
from tests.contract.apiserver.hook_server import HookServer, allow, deny, patch, warn

PROBE = f"{CONFIGMAPS}?dryRun=All"


@pytest.fixture
async def hooks(api: RawApi) -> AsyncIterator[HookServer]:
    async with HookServer(api) as server:
        yield server


async def _until_called(api: RawApi, hooks: HookServer, *names: str) -> None:
    """Wait until the server calls all these webhooks: a real one reads new configurations a moment later."""
    async with asyncio.timeout(PATIENCE):
        while not set(names) <= set(hooks.names()):
            await api.post(PROBE, config_map("probe"))
    hooks.requests.clear()


async def test_a_denial_comes_through_with_its_status_and_warnings(api: RawApi, hooks: HookServer) -> None:
    await hooks.add("careful", warn('say "when"'))
    await hooks.add("no", deny("spec.x: 3 is not allowed", code=422, reason="Invalid"), mutating=False)
    await _until_called(api, hooks, "careful", "no")
    refused = await api.post(CONFIGMAPS, config_map())
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert refused.warnings == ['299 - "say \\"when\\""']
    assert refused.message == 'admission webhook "no.example.com" denied the request: spec.x: 3 is not allowed'
    assert (await api.get(f"{CONFIGMAPS}/c")).status == 404


async def test_a_patch_changes_the_object_and_what_validation_sees(api: RawApi, hooks: HookServer) -> None:
    await hooks.add("change", patch({"op": "add", "path": "/data", "value": {"a": "changed"}}))
    await hooks.add("look", allow, mutating=False)
    await _until_called(api, hooks, "change", "look")
    made = await api.post(CONFIGMAPS, config_map(a="sent"))
    assert made.object["data"] == {"a": "changed"}
    seen = {name: request["object"]["data"] for name, request in hooks.requests}
    assert seen == {"change": {"a": "sent"}, "look": {"a": "changed"}}


async def test_an_unreachable_webhook_refuses_or_is_ignored_by_its_policy(api: RawApi, hooks: HookServer) -> None:
    nowhere: Json = {"clientConfig": {"url": "https://127.0.0.1:1/gone"}}
    await hooks.add("ignored", allow, failurePolicy="Ignore", **nowhere)
    await hooks.add("look", allow)
    await _until_called(api, hooks, "look")
    assert (await api.post(CONFIGMAPS, config_map("a"))).status == 201
    await hooks.add("needed", allow, failurePolicy="Fail", mutating=False, **nowhere)
    async with asyncio.timeout(PATIENCE):
        refused = await api.post(PROBE, config_map("b"))
        while refused.status < 400:
            refused = await api.post(PROBE, config_map("b"))
    assert (refused.status, refused.reason) == (500, "InternalError")
    assert 'failed calling webhook "needed.example.com": failed to call webhook: Post "https://127' in refused.message
