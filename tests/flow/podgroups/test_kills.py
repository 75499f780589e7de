"""The controller killed between any two writes of an opening and of a roll-back: its successor finishes, decided once.

A write is killed before it reaches the API server, or after it has landed and before its answer was heard.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.fake.view import ObjectView
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, POD_GROUPS
from jobset_gate.podgroups import record
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.settings import Groups
from tests.fakes.crash_point import CrashPoint, crash_controllers
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated, opened
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment

Json = dict[str, Any]
WRITES = 5
"""More than an opening of two pods has: decision, two gates, satisfied; statuses and Events come on top."""

LANDS = pytest.mark.parametrize("lands", [True, False], ids=["write lands", "write lost"])


class Decisions:
    """Every decision that ever stood on a group's home, in order, as its watch shows them."""

    def __init__(self, view: ObjectView, name: str) -> None:
        self.seen: list[AdmissionRecord] = []
        self._view, self._name = view, name

    def note(self, stores: list[Json]) -> bool:
        for one in (one for one in stores if one["metadata"]["name"] == self._name):
            text = one.get("data", {}).get(names.KEY_RECORD) or one["metadata"].get("annotations", {}).get(
                names.POD_GROUP_RECORD
            )
            if text and (not self.seen or record.encode_record(self.seen[-1]) != text):
                self.seen.append(record.decode_record(text))
        return False

    @property
    def openings(self) -> list[tuple[int, float]]:
        """(Generation, when) of each that was opened."""
        return sorted({(it.generation, it.at) for it in self.seen})


async def killed(
    stage: GroupEnvironment,
    last_write: int | Callable[[bytes], bool],
    *,
    lands: bool,
    end: asyncio.Task[Any],
    **options: Any,
) -> CrashPoint:
    """A controller that dies at that write, if it comes to it before the end, and its successor at work."""
    with pytest.MonkeyPatch.context() as patched:
        fate = CrashPoint(last_write=last_write, lands=lands)
        crash_controllers(patched, fate)
        stage.start_controller(**options)
        dead = asyncio.create_task(fate.dead.wait())
        await asyncio.wait((dead, end), return_when=asyncio.FIRST_COMPLETED)
        dead.cancel()
    await stage.stop_controller()
    stage.start_controller(**options)
    return fate


@LANDS
@pytest.mark.parametrize("way", [Format.SCHEDULER_PLUGINS, Format.ALIBABA])
async def test_killed_at_any_write_of_an_opening_the_successor_finishes(
    make_stage: MakeGroupEnvironment, way: Format, lands: bool
) -> None:
    async with make_stage(nodes={"n": "64"}, controller=False) as stage:
        home = POD_GROUPS[manifests.API_GROUP[way]] if way in manifests.API_GROUP else CONFIGMAPS
        came_to = []
        async with ObjectView(stage.client, home, stage.namespace) as stores:
            for write in range(1, WRITES + 1):
                fate = await open_one(stage, stores, f"ring-{write}", way, write, lands=lands)
                # The last one may be seen to have landed before the one who made it dies of it.
                came_to.append(len(fate.writes) >= write)
        assert came_to[:4] == [True] * 4


async def open_one(
    stage: GroupEnvironment, stores: ObjectView, name: str, way: Format, write: int, *, lands: bool
) -> CrashPoint:
    crd = way in manifests.API_GROUP
    if crd:
        await stage.make_group(name, 2, way)
    decisions = Decisions(stores, name if crd else names.POD_GROUP_CONFIG_MAP_PREFIX + stage.label(name, way))
    noting = asyncio.create_task(stores.until(decisions.note, 3600))
    await stage.create(*(manifests.pod(f"{name}-{each}", name, way, None if crd else 2) for each in "ab"))
    satisfied = asyncio.create_task(stores.until(lambda _: is_satisfied(decisions), 60))
    fate = await killed(stage, write, lands=lands, end=satisfied)
    await satisfied
    await stage.stop_controller()
    noting.cancel()
    pods = manifests.of_group(stage.pods.all(), name, way)
    assert [opened(it) for it in pods] == [1, 1], fate.writes
    assert len(decisions.openings) == 1, f"decided more than once after {fate.writes}: {decisions.seen}"
    return fate


def is_satisfied(decisions: Decisions) -> bool:
    return bool(decisions.seen) and decisions.seen[-1].satisfied is not None


STEPS: dict[str, Callable[[bytes], bool]] = {
    "decision to take back": lambda body: b"RollingBack" in body,
    "suspension": lambda body: b'"suspend":true' in body,
    "closing": lambda body: b"Closed" in body,
    "resumption": lambda body: b'"suspend":false' in body,
}


@LANDS
@pytest.mark.parametrize("step", STEPS)
async def test_killed_at_any_write_of_a_roll_back_the_successor_finishes(
    make_stage: MakeGroupEnvironment, step: str, lands: bool
) -> None:
    settings = Groups(capacity_check=CapacityCheck.PROBE)
    async with make_stage(nodes={"n": "1"}, settings=settings, kubelets=True, controller=False) as stage:
        await stage.make_group("ring", 2, wait=1)
        await stage.apply(manifests.job("w", "ring", 2))
        async with ObjectView(stage.client, POD_GROUPS[names.PLUGINS_GROUP], stage.namespace) as stores:
            decisions = Decisions(stores, "ring")
            noting = asyncio.create_task(stores.until(decisions.note, 3600))
            held = asyncio.create_task(stage.pods.until(lambda pods: is_back(decisions, pods), 60))
            fate = await killed(stage, STEPS[step], lands=lands, end=held)
            assert fate.dead.is_set(), fate.writes
            await stage.until(lambda pods: is_back(decisions, pods))
            held.cancel()
            noting.cancel()
        closed = decisions.seen[-1]
        assert (closed.generation, closed.rolled_back) == (1, 1), decisions.seen
        assert len(decisions.openings) == 1
        job = await stage.client.get(JOBS, "w", stage.namespace)
        assert not job["spec"].get("suspend")
        assert not job["status"].get("failed")


def is_back(decisions: Decisions, pods: list[Json]) -> bool:
    """Closed, and its owner has made all of its pods again."""
    closed = bool(decisions.seen) and decisions.seen[-1].stage is AdmissionState.CLOSED
    return closed and len(pods) == 2 and all(map(gated, pods)) and not any(map(opened, pods))
