"""The stage of the flow tests."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest

from tests.flow.environment import Environment, environment
from tests.plane.planes import Plane, Real, fresh_name

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


@pytest.fixture
async def namespaces(real_plane: Real) -> AsyncIterator[tuple[str, str]]:
    """Two on the real plane: for a release of the chart, and for gangs."""
    both = fresh_name(), fresh_name()
    for name in both:
        await real_plane.make_namespace(name)
    yield both
    for name in both:
        await real_plane.delete_namespace(name)


@pytest.fixture
async def places(scheduled_plane: Real) -> AsyncIterator[tuple[str, str]]:
    """Two on the plane with kube-scheduler: for a release of the chart, and for groups."""
    both = fresh_name(), fresh_name()
    for name in both:
        await scheduled_plane.make_namespace(name)
    yield both
    for name in both:
        await scheduled_plane.drop_namespace(name)
