"""A world for each scenario, told about in full when the scenario fails."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Generator
from functools import partial
from secrets import token_hex
from typing import Any, Final

import pytest

from e2e import scenario as worlds
from e2e.controllers import InstalledControllers
from e2e.dump import dump
from e2e.environment import Environment
from e2e.nodes import Nodes
from e2e.release_admin import ReleaseAdmin
from e2e.scenario import Scenario

FAILED: Final = pytest.StashKey[bool]()
TOLD: Final = "what is known of it"
SAID: Final = "said"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Fixtures may know afterwards that their test has failed."""
    report: pytest.TestReport = yield
    if report.when == "call" and report.failed:
        item.stash[FAILED] = True
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes jobset-gate away comes when nobody needs it any more."""
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What scenarios say of themselves, of those that passed, too."""
    passed = terminalreporter.stats.get("passed", ())
    for line in sorted({str(said) for report in passed for key, said in report.user_properties if key == SAID}):
        terminalreporter.write_line(line)


@pytest.fixture
def say(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """One line for the end of the run."""
    return partial(record_property, SAID)


@pytest.fixture(scope="session")
def ground() -> Environment:
    """The cluster, as the runner has prepared it."""
    return Environment.from_env()


@pytest.fixture
async def world(request: pytest.FixtureRequest, ground: Environment) -> AsyncIterator[Scenario]:
    """A namespace named after the scenario's file."""
    began = time.monotonic()
    story = request.path.stem.removeprefix("test_").replace("_", "-")
    async with worlds.open_scenario(ground, f"e2e-{story[:40]}-{token_hex(3)}") as it:
        yield it
        if request.node.stash.get(FAILED, False):
            gist = await asyncio.to_thread(dump, ground, it.namespace, time.monotonic() - began + 5)
            request.node.add_report_section("teardown", TOLD, gist)


@pytest.fixture
def nodes(world: Scenario) -> Nodes:
    """The nodes that gangs run on."""
    return Nodes(world.ground, world.client)


@pytest.fixture
def wires(nodes: Nodes, ground: Environment) -> Nodes:
    """The nodes, whose networks may be cut: kind's only, whose nodes are containers at hand."""
    if not ground.kind:
        pytest.skip("only the networks of kind's nodes can be cut from here")
    return nodes


@pytest.fixture
def operator(ground: Environment) -> ReleaseAdmin:
    """Who has installed it. Whoever changes the release must be alone."""
    return ReleaseAdmin(ground)


@pytest.fixture
def controllers(world: Scenario, wires: Nodes) -> InstalledControllers:
    """The installed controllers. Whoever changes them must be alone."""
    return InstalledControllers(world.client, wires)
