"""Plain scalars mean to us what they mean to kubectl (go-yaml 2's dialect of YAML 1.1)."""

import math

import pytest

from jobset_gate.cli.manifests.yaml_loader import Scalar, parse_scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("y", True),
        ("Yes", True),
        ("on", True),
        ("TRUE", True),
        ("n", False),
        ("No", False),
        ("OFF", False),
        ("tRUE", "tRUE"),
        ("0", 0),
        ("300", 300),
        ("-7", -7),
        ("+7", 7),
        ("1_000", 1000),
        ("0777", 511),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b101", 5),
        ("-0b101", -5),
        ("3e2", 300),
        ("1e3", 1000),
        ("300.0", 300),
        ("0.5", 0.5),
        (".5", 0.5),
        ("089", 89),
        ("18446744073709551615", 2**64 - 1),
        ("-", "-"),
        (".", "."),
        ("1.2.3", "1.2.3"),
        ("12:30", "12:30"),
        ("190:20:30", "190:20:30"),
        ("2001-01-01", "2001-01-01"),
        ("2001-12-14t21:59:43.10-05:00", "2001-12-14t21:59:43.10-05:00"),
        ("1e", "1e"),
        ("0x", "0x"),
        ("100m", "100m"),
        ("٣", "٣"),
        ("=", "="),
        ("busybox:1.37", "busybox:1.37"),
    ],
)
def test_meaning(text: str, value: Scalar) -> None:
    """Type and value: True is not 1 here."""
    found = parse_scalar(text)
    assert (type(found), found) == (type(value), value)


def test_an_integer_that_fits_nowhere_becomes_a_float() -> None:
    assert parse_scalar("18446744073709551616") == float(2**64)


def test_infinity_and_not_a_number_are_floats() -> None:
    assert parse_scalar("-.inf") == -math.inf
    assert math.isnan(parse_scalar(".nan"))  # type: ignore[arg-type]  # that it is a float is what is tested
