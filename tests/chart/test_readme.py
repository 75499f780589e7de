"""The chart's README names every value and its default, and nothing that is not there; so does values.yaml explain."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.chart.helm import CHART, defaults, leaves

README = (CHART / "README.md").read_text()
ELSEWHERE = "*see values.yaml*"


def rows() -> Iterator[tuple[list[str], str]]:
    """(values, default) of each line of the table of values."""
    for line in README.partition("## Values")[2].splitlines():
        if line.startswith("| `"):
            names, default, *_ = line.removeprefix("|").split(" | ")
            yield re.findall(r"`([\w.]+)`", names), default.strip()


def at(path: str) -> Any:
    value: Any = defaults()
    for key in path.split("."):
        value = value[key]
    return value


def test_every_value_is_in_the_table_and_none_twice() -> None:
    """Itself, or as a part of one that is."""
    message = [name for names, _ in rows() for name in names]
    assert [
        path for path in leaves(defaults()) if not any(path == name or path.startswith(f"{name}.") for name in message)
    ] == []
    assert len(message) == len(set(message)) > 90


def test_each_default_is_the_one_of_values_yaml() -> None:
    for names, default in rows():
        mine = [json.dumps(at(name)) for name in names]
        if default == ELSEWHERE:
            assert any(len(one) > 40 for one in mine), names
        else:
            assert re.findall(r"`([^`]*)`", default) == list(dict.fromkeys(mine)), names
