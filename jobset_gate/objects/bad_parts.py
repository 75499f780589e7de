"""Names every bad part of a value that msgspec refuses, since msgspec itself reports the first one only."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import msgspec

from jobset_gate.objects.field_error import CauseType, FieldError, child_path

REFUSALS: Final = (msgspec.ValidationError, UnicodeError)
"""What msgspec.convert raises; the second for text that is not Unicode, such as a lone surrogate."""


def bad_parts(value: Any, kind: Any, path: str, *, strict: bool = True) -> Iterator[FieldError]:
    """Each part of a value that does not convert to a msgspec type; none if the value does.

    `kind`: a Struct that forbids unknown keys, a dict, list or tuple of one type, or what has no parts, each with
    constraints or without, or None. `path`: of the value. `strict`: as msgspec.convert has it.
    """
    if type(None) in get_args(kind) and value is not None:
        (kind,) = (it for it in get_args(kind) if it is not type(None))
    try:
        msgspec.convert(value, kind, strict=strict)
    except REFUSALS as problem:
        found: list[FieldError] = []
        for key, part, its_kind in _parts(value, _plain(kind)):
            where = child_path(path, key)
            if its_kind is None:
                found.append(FieldError(where, part, "unknown key", CauseType.NOT_SUPPORTED))
            else:
                found += bad_parts(part, its_kind, where, strict=strict)
        yield from found or [FieldError(path, value, _message(kind, str(problem)))]


def _plain(kind: Any) -> Any:
    """Without its constraints."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _parts(value: Any, kind: Any) -> Iterator[tuple[Any, Any, Any]]:
    """(key, part, its type) of each part; an unknown key has no type."""
    if isinstance(value, Mapping) and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        known = {it.encode_name: it.type for it in msgspec.structs.fields(kind)}
        yield from ((key, part, known.get(key)) for key, part in value.items())
    elif isinstance(value, Mapping) and get_origin(kind) is dict:
        yield from ((key, part, get_args(kind)[1]) for key, part in value.items())
    elif isinstance(value, list) and get_origin(kind) in (list, tuple):
        yield from ((index, part, get_args(kind)[0]) for index, part in enumerate(value))


def _message(kind: Any, problem: str) -> str:
    """What is allowed: as the type describes itself, the members of an enumeration, or what msgspec expects."""
    for constraint in getattr(kind, "__metadata__", ()):
        if constraint.description:
            return str(constraint.description)
    members = get_args(kind) if get_origin(kind) is Literal else ()
    if isinstance(kind, type) and issubclass(kind, Enum):
        members = tuple(str(it.value) for it in kind)
    if members:
        return f"must be {', '.join(members[:-1])} or {members[-1]}"
    return problem.partition(" - at ")[0].replace("Expected", "expected", 1)
