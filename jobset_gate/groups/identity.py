"""The label that ties a pod to its group: a hash, since annotations cannot be selected (G2)."""

import hashlib
from typing import Final

import msgspec

from jobset_gate.bounded_cache import BoundedCache
from jobset_gate.groups.model import Key

LENGTH: Final = 40
"""Hexadecimal digits, 160 bits: two groups never share one. A label's value may have 63."""


_known: Final = BoundedCache[Key, str](8 * 1024 * 1024)
"""Of some 20,000 groups: the label is asked for with each look at each pod."""


def label(key: Key) -> str:
    """The value of the label on every pod of the group."""
    known = _known.get(key)
    return _known.keep(key, _hash(key), 350 + len(key.name)) if known is None else known


def _hash(key: Key) -> str:
    # As JSON, or "a" in "b/c" and "a/b" in "c" would be one.
    said = msgspec.json.encode([key.design.value, key.namespace, key.name])
    return hashlib.sha256(said).hexdigest()[:LENGTH]
