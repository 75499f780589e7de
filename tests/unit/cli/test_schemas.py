"""Every field of every JSON document has a description."""

from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest

from docs.make.schemas import SCHEMAS


def described(schema: Any, path: str = "") -> Iterator[str]:
    """Where a description is missing."""
    for name, field in schema.get("properties", {}).items():
        if not field.get("description"):
            yield f"{path}.{name}"
        yield from described(field, f"{path}.{name}")
    if "items" in schema:
        yield from described(schema["items"], f"{path}[]")


@pytest.mark.parametrize("command", SCHEMAS)
def test_every_schema_is_one_and_says_what_its_fields_mean(command: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[command])
    assert SCHEMAS[command]["title"]
    assert [*described(SCHEMAS[command])] == []
