"""Whether a document has the documented shape: every field, and none that nobody has described."""

from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types


def check_document(found: Any, schema: Any) -> None:
    """Raises jsonschema's ValidationError."""
    jsonschema.validate(found, _strict(schema), format_checker=jsonschema.FormatChecker(formats=["date-time"]))


def _strict(schema: Any) -> Any:
    """The same without room for more: a field that nobody has described is a mistake of ours."""
    if isinstance(schema, list):
        return [_strict(it) for it in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if "properties" in schema else {}
    return {key: _strict(value) for key, value in schema.items()} | closed
