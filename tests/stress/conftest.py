"""What tests of random schedules share."""

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture
def quiet() -> Iterator[None]:
    """The controllers log each failed call; a schedule makes many of them fail."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    yield
    structlog.reset_defaults()
