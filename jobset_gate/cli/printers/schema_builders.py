"""Words to write JSON schemas with: every field has a description and is always there."""

from collections.abc import Mapping
from typing import Any, Final

Json = dict[str, Any]

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def a(kind: str, description: str, **more: Any) -> Json:
    """A value; `kind` with a question mark may be null."""
    name = kind.removesuffix("?")
    return {"type": [name, "null"] if kind.endswith("?") else name, "description": description, **more}


def record(description: str, fields: Mapping[str, Json], *, nullable: bool = False) -> Json:
    """An object that always has all of these fields."""
    kind = ["object", "null"] if nullable else "object"
    return {"type": kind, "description": description, "properties": dict(fields), "required": list(fields)}


def many(description: str, items: Json) -> Json:
    """A list."""
    return {"type": "array", "description": description, "items": items}


def whole(title: str, description: str, fields: Mapping[str, Json]) -> Json:
    """A document."""
    return {"$schema": DRAFT, "title": title, **record(description, fields)}


def kind(name: str) -> Json:
    """The field that says what a document is."""
    return {"const": name, "description": "What this is."}


def moment(description: str) -> Json:
    """A time in UTC; null where it is not known or has not come."""
    return a("string?", description, format="date-time")


TEXT: Final = a("string", "In words, for people.")
COUNT: Final[Json] = {"minimum": 0}
