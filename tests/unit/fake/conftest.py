"""`run` runs a story on the embedded cluster in virtual time, and again on the real control plane."""

from functools import partial

import pytest

from tests.unit.fake.world import Run, on_embedded, on_real, on_scheduled


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
def run(request: pytest.FixtureRequest) -> Run:
    """Call it with a story and settings of the controllers."""
    if request.param == "embedded":
        return on_embedded
    return partial(on_real, request.getfixturevalue("real_plane"))


@pytest.fixture(params=["played", pytest.param("scheduled", marks=pytest.mark.real, id="real")])
def scheduled(request: pytest.FixtureRequest) -> Run:
    """The same, once with the scheduler that is played and once with kube-scheduler."""
    if request.param == "played":
        return on_embedded
    return partial(on_scheduled, request.getfixturevalue("scheduled_plane"))
