"""What CEL's operators and functions do with values: strict about types, never Python's own idea of them."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

from jobset_gate.fake.apiserver.celparse import CelError

_NUMBERS = (int, float)


def truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError("no such overload")
    return value


def number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        raise CelError("no such overload")
    return value


def select(value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        raise CelError("no such overload" if value is not None else f"no such key: {name}")
    if name not in value:
        raise CelError(f"no such key: {name}")
    return value[name]


def _same(left: Any, right: Any) -> bool:
    """Equality: never between booleans and numbers, as Python would have it."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    return bool(left == right)


def _member(value: Any, group: Any) -> bool:
    if not isinstance(group, list | dict):
        raise CelError("no such overload")
    return any(_same(value, item) for item in group)


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    def run(left: Any, right: Any) -> bool:
        if isinstance(left, str) and isinstance(right, str):
            return bool(compare(left, right))
        return bool(compare(number(left), number(right)))

    return run


def _plus(left: Any, right: Any) -> Any:
    for sort in (str, list):
        if isinstance(left, sort) and isinstance(right, sort):
            return left + right  # type: ignore[operator]  # both are of that sort
    return number(left) + number(right)


def _arithmetic(act: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def run(left: Any, right: Any) -> Any:
        try:
            return act(number(left), number(right))
        except ZeroDivisionError as error:
            raise CelError("division by zero") from error

    return run


def _divide(left: Any, right: Any) -> Any:
    """Integers divide towards zero."""
    if isinstance(left, float):
        return left / right
    whole = abs(left) // abs(right)
    return whole if (left < 0) == (right < 0) else -whole


def _remainder(left: Any, right: Any) -> Any:
    """It has the sign of the dividend."""
    if right == 0:
        raise ZeroDivisionError
    return int(math.copysign(abs(left) % abs(right), left))


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": _same,
    "!=": lambda left, right: not _same(left, right),
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "in": _member,
    "+": _plus,
    "-": _arithmetic(operator.sub),
    "*": _arithmetic(operator.mul),
    "/": _arithmetic(_divide),
    "%": _arithmetic(_remainder),
}


def has(value: Any, name: str) -> bool:
    if not isinstance(value, dict):
        raise CelError("no such overload")
    return name in value


def size(value: Any) -> int:
    if not isinstance(value, str | list | dict):
        raise CelError("no such overload")
    return len(value)


def _convert(sort: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        try:
            return sort(value)
        except (TypeError, ValueError) as error:
            raise CelError(f"type conversion error: {error}") from error

    return run


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


TYPES: dict[str, type] = {
    "map": dict,
    "list": list,
    "string": str,
    "bool": bool,
    "int": int,
    "double": float,
    "null_type": type(None),
}

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "type": type,
    "size": size,
    "int": _convert(int),
    "double": _convert(float),
    "string": _convert(_text),
    "bool": truth,
}


TEXT_METHODS: dict[str, Callable[[str, str], bool]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": lambda value, part: part in value,
    "matches": lambda value, pattern: re.search(pattern, value) is not None,
}
