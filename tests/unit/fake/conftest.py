"""`run` runs a story on the embedded cluster in virtual time, and again on the real control plane."""

from functools import partial

import pytest

from tests.unit.fake.world import Run, on_embedded, on_real


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
def run(request: pytest.FixtureRequest) -> Run:
    """Call it with a story."""
    if request.param == "embedded":
        return on_embedded
    return partial(on_real, request.getfixturevalue("real_plane"))
