"""The stage of the tests of pod groups."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest

from tests.flow.podgroups.environment import GroupEnvironment, group_environment
from tests.plane.planes import Real

MakeGroupEnvironment = Callable[..., AbstractAsyncContextManager[GroupEnvironment]]


@pytest.fixture(params=[pytest.param("scheduled", marks=pytest.mark.real)])
def plane(scheduled_plane: Real) -> Real:
    """The real one with kube-scheduler; the embedded one has no scheduler that could be reported from it."""
    return scheduled_plane


@pytest.fixture
def make_stage(plane: Real, namespace: str) -> MakeGroupEnvironment:
    """Makes stages, to be entered with `async with`; takes the settings of `group_stage`."""
    return partial(group_environment, plane, namespace)
