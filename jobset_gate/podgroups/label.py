"""The label that ties a pod to its group: a hash, since annotations cannot be selected (G2)."""

import hashlib
from typing import Final

import msgspec

from jobset_gate.objects.bounded_cache import BoundedCache
from jobset_gate.podgroups.model import PodGroupKey

LENGTH: Final = 40
"""Hexadecimal digits, 160 bits: two groups never share one. A label's value may have 63."""


_known: Final = BoundedCache[PodGroupKey, str](8 * 1024 * 1024)
"""Of some 20,000 groups: the label is asked for with each look at each pod."""


def group_label(key: PodGroupKey) -> str:
    """The value of the label on every pod of the group."""
    known = _known.get(key)
    return _known.put(key, _hash(key), 350 + len(key.name)) if known is None else known


def _hash(key: PodGroupKey) -> str:
    # As JSON, or "a" in "b/c" and "a/b" in "c" would be one.
    said = msgspec.json.encode([key.design.value, key.namespace, key.name])
    return hashlib.sha256(said).hexdigest()[:LENGTH]
