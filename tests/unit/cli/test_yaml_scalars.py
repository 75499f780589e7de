"""Plain scalars mean to us what they mean to kubectl (go-yaml 2's dialect of YAML 1.1)."""

import math

import pytest

from jobset_gate.cli.manifests.yaml_loader import Scalar, parse_scalar

MEANINGS: dict[Scalar, tuple[str, ...]] = {
    None: ("", "~", "null"),
    True: ("y", "Yes", "on", "TRUE"),
    False: ("n", "No", "OFF"),
    300: ("300", "3e2", "300.0"), -7: ("-7",), 7: ("+7",), 1000: ("1_000", "1e3"), 511: ("0777",),
    15: ("0o17",), 31: ("0x1F",), 5: ("0b101",), -5: ("-0b101",), 89: ("089",), 0.5: ("0.5", ".5"),
    2**64 - 1: ("18446744073709551615",), -math.inf: ("-.inf",),
}  # fmt: skip
STRINGS = (
    "tRUE", "-", ".", "1.2.3", "12:30", "190:20:30", "2001-01-01", "2001-12-14t21:59:43.10-05:00", "1e", "0x", "100m",
    "٣", "=", "busybox:1.37",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), *((it, value) for value, texts in MEANINGS.items() for it in texts), *((it, it) for it in STRINGS)],
)
def test_meaning(text: str, value: Scalar) -> None:
    """Type and value: True is not 1 here."""
    found = parse_scalar(text)
    assert (type(found), found) == (type(value), value)


def test_what_no_integer_holds_is_a_float() -> None:
    assert parse_scalar("18446744073709551616") == float(2**64)
    assert math.isnan(parse_scalar(".nan"))  # type: ignore[arg-type]  # that it is a float is what is tested
