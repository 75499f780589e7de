"""Amounts of resources."""

from typing import Any

import pytest

from jobset_gate.objects import quantity


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1000m", "1"), ("1024Mi", "1Gi"), ("0.5", "500m"), (0.5, "500m"), (1, "1"), ("1k", "1000"), ("1E", "1e18"),
        ("1E3", "1k"), ("1e-3", "1m"), ("1000u", "1m"), (".5", "0.5"), ("5.", "5"), ("+1", "1"), ("1Ki", "1024"),
    ],
)  # fmt: skip
def test_different_words_for_the_same_amount(one: Any, other: Any) -> None:
    assert quantity.same(one, other)


@pytest.mark.parametrize(
    ("one", "other"), [("1", "1m"), ("1M", "1Mi"), ("1G", "1Gi"), ("x", "y"), (True, 1.5), ("", 0)]
)
def test_different_amounts(one: Any, other: Any) -> None:
    assert not quantity.same(one, other)


@pytest.mark.parametrize(
    "value",
    [None, True, "", "one", "1 Gi", "1KI", "1e999999999", "9" * 65, [], {}, float("inf"), float("nan")],
    ids=repr,
)
def test_what_is_no_amount_has_no_number(value: Any) -> None:
    assert quantity.amount(value) is None
