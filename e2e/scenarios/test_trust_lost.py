"""The CA's Secret is deleted, or the caBundle wiped: API servers trust the webhook again within half a minute."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from e2e import gate
from e2e.release_admin import until_barriers_injected
from e2e.scenario import Scenario
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from webhook import registration

pytestmark = pytest.mark.alone
HEALED_SECONDS: Final = 30.0
LOOK_EVERY: Final = 0.2
CONFIGURATIONS: Final = ((MUTATING_WEBHOOKS, registration.MUTATING), (VALIDATING_WEBHOOKS, registration.VALIDATING))
Json = dict[str, Any]


async def no_secret(scenario: Scenario) -> None:
    await scenario.client.delete(SECRETS, gate.CA_SECRET, gate.NAMESPACE)


async def empty_secret(scenario: Scenario) -> None:
    gone = {"data": None}
    await scenario.client.patch(SECRETS, gate.CA_SECRET, gate.NAMESPACE, body=gone, patch=PatchType.MERGE)


async def no_ca_bundle(scenario: Scenario) -> None:
    wipe = [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]
    for resource, name in CONFIGURATIONS:
        await scenario.client.patch(resource, name, body=wipe, patch=PatchType.JSON)


@pytest.mark.parametrize("lose", [no_secret, empty_secret, no_ca_bundle])
async def test_it_is_healed(scenario: Scenario, lose: Callable[[Scenario], Awaitable[None]]) -> None:
    await lose(scenario)
    async with asyncio.timeout(HEALED_SECONDS):
        while not await whole(scenario):  # noqa: ASYNC110 - three objects, a look now and then
            await asyncio.sleep(LOOK_EVERY)
    await until_barriers_injected(scenario)


async def whole(scenario: Scenario) -> bool:
    """The Secret holds a CA with its key, and both configurations carry the CA to trust."""
    try:
        secret = await scenario.client.get(SECRETS, gate.CA_SECRET, gate.NAMESPACE)
    except NotFound:
        return False
    hooks = [(await scenario.client.get(resource, name))["webhooks"][0] for resource, name in CONFIGURATIONS]
    said = all(hook["clientConfig"].get("caBundle") for hook in hooks)
    return said and {"ca.crt", "ca.key"} <= set(secret.get("data") or {})
