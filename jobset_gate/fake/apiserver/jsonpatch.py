"""JSON Patch (RFC 6902), for PATCH and for the answers of admission webhooks."""

from __future__ import annotations

from typing import Any

from jobset_gate.fake.apiserver.encoding import copy, dig
from jobset_gate.fake.apiserver.status_errors import StatusError

Operations = list[dict[str, Any]]


def patched(document: Any, operations: Operations) -> Any:
    """Apply all operations to `document`, which the caller gives away.

    Errors: Problem 422, which says more than the real server's own text does.
    """
    for operation in operations:
        if not isinstance(dig(operation, "path"), str):
            raise _refused(f"not a JSON patch operation: {operation!r}")
        document = _apply(document, operation)
    return document


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    path = _steps(operation["path"])
    match operation.get("op"):
        case "add":
            return _add(document, path, copy(operation.get("value")))
        case "remove":
            return _remove(document, path)
        case "replace":
            return _replace(document, path, copy(operation.get("value")))
        case "move":
            start = _steps(operation["from"])
            value = _get(document, start)
            return _add(_remove(document, start), path, value)
        case "copy":
            return _add(document, path, copy(_get(document, _steps(operation["from"]))))
        case "test":
            if _get(document, path, missing=None) != operation.get("value"):
                raise _refused(f"testing value {operation['path']} failed: test failed")
            return document
        case other:
            raise _refused(f"Unexpected kind: {other}")


def _steps(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise _refused(f"not a JSON pointer: {pointer!r}")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


_RAISE = object()


def _get(document: Any, path: list[str], *, missing: Any = _RAISE) -> Any:
    for step in path:
        try:
            document = document[_index(document, step)] if isinstance(document, list) else document[step]
        except (KeyError, IndexError, TypeError) as error:
            if missing is not _RAISE:
                return missing
            raise _missing(path) from error
    return document


def _index(items: list[Any], step: str, *, end: bool = False) -> int:
    """A place in a list. `end`: "-" and the length are places too, where something can be added."""
    if end and step == "-":
        return len(items)
    if not step.isdigit() or (len(step) > 1 and step.startswith("0")):
        raise _refused(f"invalid array index {step!r}")
    place = int(step)
    if place >= len(items) + end:
        raise _refused(f"Unable to access invalid index: {place}: invalid index referenced")
    return place


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        parent.insert(_index(parent, last, end=True), value)
    elif isinstance(parent, dict):
        parent[last] = value
    else:
        raise _missing(path)
    return document


def _replace(document: Any, path: list[str], value: Any) -> Any:
    """The library behind the real server lets `replace` add a field that a mapping does not have."""
    if not path:
        return value
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        parent[_index(parent, last)] = value
    elif isinstance(parent, dict):
        parent[last] = value
    else:
        raise _missing(path)
    return document


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        raise _refused("the whole document cannot be removed")
    _get(document, path)
    parent, last = _get(document, path[:-1]), path[-1]
    del parent[_index(parent, last) if isinstance(parent, list) else last]
    return document


def _refused(message: str) -> StatusError:
    return StatusError(422, f"the server rejected our request due to an error in our request: {message}")


def _missing(path: list[str]) -> StatusError:
    return _refused(f"doc is missing path: /{'/'.join(path)}: missing value")
