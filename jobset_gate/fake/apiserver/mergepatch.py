"""JSON merge patch (RFC 7386): null removes, mappings merge, everything else replaces."""

from __future__ import annotations

from typing import Any


def merged(document: Any, patch: Any) -> Any:
    """`document` is given away by the caller, `patch` is not changed."""
    if not isinstance(patch, dict):
        return patch
    result = document if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result
