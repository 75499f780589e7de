"""A value that has to be there."""

from typing import TypeVar

T = TypeVar("T")


def present(value: T | None) -> T:
    """Fails the test if it is None."""
    assert value is not None
    return value
