"""A namespace for each scenario; all that is known of it is reported when it fails."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Generator
from functools import partial
from secrets import token_hex
from typing import Any, Final

import pytest

from e2e import scenario as scenarios
from e2e.controllers import InstalledControllers
from e2e.dump import dump
from e2e.environment import Environment
from e2e.nodes import Nodes
from e2e.release_admin import ReleaseAdmin
from e2e.scenario import Scenario

FAILED: Final = pytest.StashKey[bool]()
DUMP: Final = "what is known of it"
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
def environment() -> Environment:
    """The cluster, as the runner has prepared it."""
    return Environment.from_env()


@pytest.fixture
async def scenario(request: pytest.FixtureRequest, environment: Environment) -> AsyncIterator[Scenario]:
    """A namespace named after the scenario's file."""
    began = time.monotonic()
    story = request.path.stem.removeprefix("test_").replace("_", "-")
    async with scenarios.open_scenario(environment, f"e2e-{story[:40]}-{token_hex(3)}") as it:
        yield it
        if request.node.stash.get(FAILED, False):
            gist = await asyncio.to_thread(dump, environment, it.namespace, time.monotonic() - began + 5)
            request.node.add_report_section("teardown", DUMP, gist)


@pytest.fixture
def nodes(scenario: Scenario) -> Nodes:
    """The nodes that gangs run on."""
    return Nodes(scenario.environment, scenario.client)


@pytest.fixture
def kind_nodes(nodes: Nodes, environment: Environment) -> Nodes:
    """The nodes, whose networks may be cut: kind's only, whose nodes are containers at hand."""
    if not environment.kind:
        pytest.skip("only the networks of kind's nodes can be cut from here")
    return nodes


@pytest.fixture
def release_admin(environment: Environment) -> ReleaseAdmin:
    """Changes the installed release. Scenarios that do so run alone."""
    return ReleaseAdmin(environment)


@pytest.fixture
def controllers(scenario: Scenario, kind_nodes: Nodes) -> InstalledControllers:
    """The installed controllers. Scenarios that change them run alone."""
    return InstalledControllers(scenario.client, kind_nodes)
