"""Two gangs that need most of the cluster each, their pods created in turn: without us neither gets its minimum (G3).

With us the first is bound whole, and no pod of the second is ungated until all of it fits.
"""

import asyncio
from typing import Any

from tests.fakes.podgroups import manifests
from tests.flow.podgroups.conftest import MakeGroupEnvironment

Json = dict[str, Any]

NODES = {f"n{number}": "2" for number in range(5)}
ALL = 10
"""Processors of all nodes, one for each pod."""
EACH = 6
"""Pods of each gang, and its minimum."""


def in_turn() -> list[Json]:
    """A0, B0, A1, B1 and so on."""
    return [manifests.pod(f"{name}{number}", name) for number in range(EACH) for name in "ab"]


def of(pods: list[Json], name: str) -> list[Json]:
    return [it for it in pods if it["metadata"]["name"].startswith(name)]


def bound(pods: list[Json], name: str) -> int:
    return sum(map(manifests.bound, of(pods, name)))


def whole(pods: list[Json]) -> list[str]:
    return [name for name in "ab" if bound(pods, name) >= EACH]


class UngateChecker:
    """Sees whether a pod is ungated while its gang has no room."""

    def __init__(self) -> None:
        self.breaches: list[str] = []

    def look(self, pods: list[Json]) -> bool:
        for name, other in ("ab", "ba"):
            ungated = sum(not manifests.gated(it) and not manifests.bound(it) for it in of(pods, name))
            if ungated and bound(pods, other) > ALL - EACH:
                self.breaches.append(f"{ungated} of {name} while {bound(pods, other)} of {other} are bound")
        return False


async def test_with_us_one_is_bound_after_the_other(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes=NODES) as stage:
        for name in "ab":
            await stage.make_group(name, EACH)
        checker = UngateChecker()
        looking = asyncio.create_task(stage.pods.until(checker.look, 3600))
        await stage.create(*in_turn(), at_once=1)
        (first,) = whole(await stage.until(lambda pods: bool(whole(pods))))
        second = "b" if first == "a" else "a"
        await stage.until_group(second, lambda it: f"needs {EACH} cpu, {ALL - EACH} free" in str(it))
        for pod in of(stage.pods.all(), first):
            await stage.delete_pod(pod["metadata"]["name"], grace_seconds=0)
        await stage.until(lambda pods: whole(pods) == [second])
        looking.cancel()
        assert not checker.breaches
