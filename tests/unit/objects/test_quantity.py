"""Amounts of resources, and objects that mean the same."""

from typing import Any

import pytest

from jobset_gate.objects import quantity

SAME = [
    ("1000m", "1"), ("1024Mi", "1Gi"), ("0.5", "500m"), (0.5, "500m"), (1, "1"), ("1k", "1000"), ("1E", "1e18"),
    ("1E3", "1k"), ("1e-3", "1m"), ("1000u", "1m"), (".5", "0.5"), ("5.", "5"), ("+1", "1"), ("1Ki", "1024"),
]  # fmt: skip
DIFFERENT = [("1", "1m"), ("1M", "1Mi"), ("1G", "1Gi"), ("x", "y"), (True, 1.5), ("", 0)]


@pytest.mark.parametrize(("one", "other"), [*SAME, *DIFFERENT])
def test_amounts_are_the_same_in_whatever_words(one: Any, other: Any) -> None:
    assert quantity.same(one, other) is ((one, other) in SAME)


@pytest.mark.parametrize(
    "value",
    [None, True, "", "one", "1 Gi", "1KI", "1e999999999", "9" * 65, [], {}, float("inf"), float("nan")],
    ids=repr,
)
def test_what_is_no_amount_has_no_number(value: Any) -> None:
    assert quantity.amount(value) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1}, {"a": 1, "b": {}}, True),
        ({"a": [{"b": ""}]}, {"a": [{}]}, True),
        ({"a": None}, {}, True),
        ({"a": {"b": {"c": []}}}, {}, True),
        ({"a": 0}, {}, False),
        ({"a": False}, {}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": [1]}, {"a": []}, False),
        ({"a": 1}, {"a": "1"}, False),
    ],
)
def test_empty_and_absent_members_are_the_same(one: dict[str, Any], other: dict[str, Any], same: bool) -> None:
    assert quantity.semantically_equal(one, other) is same
    assert quantity.semantically_equal(other, one) is same
