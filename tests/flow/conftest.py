"""The stage of the flow tests."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest

from tests.flow.environment import Environment, environment
from tests.plane.planes import Plane

MakeEnvironment = Callable[..., AbstractAsyncContextManager[Environment]]


@pytest.fixture
def make_stage(plane: Plane, namespace: str) -> MakeEnvironment:
    """Makes stages, to be entered with `async with`; takes the settings of `staged`."""
    return partial(environment, plane, namespace)


@pytest.fixture
async def stage(make_stage: MakeEnvironment) -> AsyncIterator[Environment]:
    """A stage with one roomy node, everything running."""
    async with make_stage() as made:
        yield made
