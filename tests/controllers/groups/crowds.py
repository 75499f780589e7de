"""So many small groups at once that it is a rush, for the tests of what the controller puts off meanwhile."""

from __future__ import annotations

from typing import Any, Final

from controllers.groups.rush import MANY
from tests.controllers.groups.small import SmallCluster

CROWD: Final = [f"g{number}" for number in range(MANY + 2)]
MADE: Final = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u-r", "controller": True}]
}
"""Metadata of a pod that may be taken back: somebody makes another."""


def gather(cluster: SmallCluster, *groups: str, **more: Any) -> None:
    """Groups of two pods that need both; `more` as for `SmallCluster.gather`."""
    for name in groups:
        cluster.gather(name, f"{name}-0", f"{name}-1", minimum=2, meta=MADE, **more)


def bind(cluster: SmallCluster, *groups: str) -> None:
    """Both pods of each get a node."""
    for name in groups:
        cluster.bind(f"{name}-0", f"{name}-1")


def satisfied(cluster: SmallCluster, *groups: str) -> list[str]:
    """Those of these (or of all) whose record says so."""
    of = groups or CROWD
    return [name for name in of if (it := cluster.record(name)) is not None and it.satisfied is not None]
