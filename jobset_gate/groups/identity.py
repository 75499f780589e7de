"""The label that ties a pod to its group: a hash, since annotations cannot be selected (G2)."""

import hashlib
from functools import lru_cache
from typing import Final

import msgspec

from jobset_gate.groups.model import Key

LENGTH: Final = 40
"""Hexadecimal digits, 160 bits: two groups never share one. A label's value may have 63."""


_KNOWN: Final = 1 << 16


@lru_cache(maxsize=_KNOWN)
def label(key: Key) -> str:
    """The value of the label on every pod of the group."""
    # As JSON, or "a" in "b/c" and "a/b" in "c" would be one.
    said = msgspec.json.encode([key.design.value, key.namespace, key.name])
    return hashlib.sha256(said).hexdigest()[:LENGTH]
