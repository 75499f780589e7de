"""`--price`: what a device costs for an hour, one number for all or one for each kind."""

from collections.abc import Sequence
from math import isfinite

from jobset_gate.cli.exits import CommandError, ExitCode


def parse_prices(given: Sequence[str]) -> dict[str, float]:
    """`2.5` is filed under "", `nvidia.com/gpu=2.5` under its name. Raises Failed for what is no price."""
    found: dict[str, float] = {}
    for text in given:
        resource, equals, number = text.rpartition("=")
        price = _number(number)
        if price is None or (equals and not resource):
            raise CommandError(
                f"--price {text}: give a number, or RESOURCE=NUMBER such as nvidia.com/gpu=2.50", ExitCode.USAGE
            )
        if resource in found:
            raise CommandError(
                f"--price {text}: {resource or 'the price of all devices'} is given twice", ExitCode.USAGE
            )
        found[resource] = price
    return found


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) and value >= 0 else None
