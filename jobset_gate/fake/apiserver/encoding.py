"""JSON objects as the store keeps them: encoding, copying, reaching into them, and times on the wire."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

Obj = dict[str, Any]

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


def copy(value: Any) -> Any:
    """A deep copy of JSON, several times faster than copy.deepcopy."""
    kind = type(value)
    if kind is dict:
        return {key: copy(item) for key, item in value.items()}
    if kind is list:
        return [copy(item) for item in value]
    return value


def dig(value: Any, *path: str) -> Any:
    """The value at `path`, or None where the path ends early."""
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def timestamp(seconds: float) -> str:
    """Whole seconds, RFC 3339, UTC: what the API server writes into metadata."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> float:
    """The reverse of `timestamp`, also for fractions and offsets."""
    return datetime.fromisoformat(text).timestamp()
