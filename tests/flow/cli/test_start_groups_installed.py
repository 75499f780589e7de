"""Commands on a start group of a real StatefulSet, with webhook, kubelets and a controller."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from jobset_gate import names
from jobset_gate.kube.resources import EVENTS, PODS, STATEFUL_SETS
from jobset_gate.settings import Gangs, Settings
from jobset_gate_demo.fake.kubelet import FakeNode
from tests.fakes.admission_server import registered_for_start_groups
from tests.fakes.cli_runner import CliShell
from tests.flow.environment import Environment, environment, with_stream
from tests.flow.test_stream import stateful_set
from tests.plane.planes import Real

pytestmark = pytest.mark.real
SOURCES = ("jobset", "startgroup")


@pytest.fixture
async def stuck(real_plane: Real, namespace: str) -> AsyncIterator[Environment]:
    """Two of three pods of `ring` wait in their barriers, for the third there is no room. No controller runs."""
    async with AsyncExitStack() as stack:
        small = (FakeNode("small", pods=2),)
        made = environment(real_plane, namespace, nodes=small, controller=False, webhook=False)
        stage = await stack.enter_async_context(made)
        settings = with_stream(Settings(gangs=Gangs(sources=SOURCES)), stage.service.url)
        await stack.enter_async_context(registered_for_start_groups(stage.client, namespace, settings))
        await stage.client.create(STATEFUL_SETS, stateful_set(3), namespace)
        await stage.until_held(2)
        yield stage


async def test_release_opens_the_attempt_that_waits_and_the_next_one_waits_again(
    stuck: Environment, cli: CliShell
) -> None:
    stuck.start_controller(sources=SOURCES)
    ran = await cli("release", "startgroup/ring", "--yes")
    said = "startgroup/ring released: gate opened by hand with 2/3 pods started"
    assert (ran.code, ran.out.splitlines()[-1]) == (0, said)
    await stuck.until_running(2)
    assert (await cli("wait", "startgroup/ring", "--for=released")).code == 0
    by_user = [
        it
        for it in (await stuck.client.list(EVENTS, stuck.namespace))["items"]
        if it["reason"] == names.REASON_RELEASED_BY_USER
    ]
    assert [it["involvedObject"]["kind"] for it in by_user] == ["StatefulSet"]
    for number in range(3):
        await stuck.client.delete(PODS, f"set-{number}", stuck.namespace)
    await stuck.until_held(2)
    assert "pods of StatefulSet set, attempt 1" in (await cli("why", "ring")).out
    late = await cli("wait", "ring", "--timeout=0")
    assert (late.code, "is not released after 0s" in late.err) == (3, True)
