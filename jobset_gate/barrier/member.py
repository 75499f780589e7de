"""What pods that are gated one by one, and the ConfigMap of a start group, say of the gang (K2, K5).

Immutable values, as in `model.py`.
"""

import msgspec


class ObjectSeen(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """An object that owns pods, as their ownerReferences name it."""

    api_version: str
    kind: str
    name: str
    uid: str = ""
    """Where it is not that of the gang's generation, and known."""


class MemberSeen(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What a pod that is gated alone says of its gang. Pods of one template share one."""

    owner: ObjectSeen
    size: int
    """How many pods wait for each other; 0 without a valid number."""
    timeout: int | None
    bypass: bool
    releases_on_timeout: bool
    has_barrier: bool
    devices: tuple[tuple[str, int], ...] = ()


class Membership(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The attempt that a start group's ConfigMap records, and which pods belong to it (K5)."""

    attempt: int
    members: frozenset[str] = frozenset()
    """UIDs of its live pods when clock or verdict was written; empty before either."""
