"""A second namespace, for the same program without the gate."""

from collections.abc import AsyncIterator
from secrets import token_hex

import pytest

from e2e import scenario as scenarios
from e2e.environment import Environment
from e2e.scenario import Scenario


@pytest.fixture
async def ungated(environment: Environment) -> AsyncIterator[Scenario]:
    async with scenarios.open_scenario(environment, f"e2e-ungated-{token_hex(3)}") as it:
        yield it
