"""The status of groups on real PodGroups: whose it is, and each phase (G5)."""

import asyncio
from collections.abc import Callable
from typing import Any

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import POD_GROUPS
from jobset_gate.podgroups import podgroup_status
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import Groups
from jobset_gate_demo.fake.kubelet import PodMatch
from tests.fakes.podgroups import manifests
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.groups import condition_of, touch_group

Json = dict[str, Any]
RING = "ring"
WAIT = 100
SETTINGS = Groups(capacity_check=CapacityCheck.PROBE, wait_seconds=WAIT)
KINDS = {Format.SCHEDULER_PLUGINS: "plugins", Format.KOORDINATOR_POD_GROUP: "sigs", Format.KEP_24: "kep24"}
"""By way, what its pods are called and which node they select."""
SHORT = podgroup_status.STATUS_FIELDS[names.PLUGINS_GROUP]


async def test_a_status_that_another_controller_writes_is_only_read(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "4"}) as stage:
        await stage.make_group(RING, 2)
        theirs = {"phase": "Scheduling", "running": 7}
        where = (POD_GROUPS[names.PLUGINS_GROUP], RING, stage.namespace)
        how: Json = {"patch": PatchType.MERGE, "subresource": "status", "field_manager": "coscheduler"}
        await stage.client.patch(*where, body={"status": theirs}, **how)
        await stage.create(*(manifests.pod(name, RING) for name in "ab"))
        reported = await stage.until_event(RING, names.REASON_STATUS_NOT_OURS)
        assert "coscheduler writes this status" in reported

        def stated(one: Json) -> bool:
            return "Satisfied" in (one["metadata"].get("annotations") or {}).get(names.POD_GROUP_STATE, "")

        found = await stage.until_group(RING, stated)
        assert found["status"] == theirs


class Reported:
    """What the status of each kind is to say, next after what it said before."""

    def __init__(self, stage: GroupEnvironment) -> None:
        self._stage = stage

    async def later(self, seconds: float) -> None:
        """So much later, and something changes on each PodGroup, so that it is looked at."""
        self._stage.clock.forward(seconds)
        for way in KINDS:
            await touch_group(self._stage, RING, way)

    async def until(self, phase: str, *reasons: str, admitted: int, **numbers: int) -> list[Json]:
        """Until all kinds say so; gives their statuses. KEP-24's has no phase, and alone says how many are admitted.

        `reasons`: one for all, or one for each kind.
        """
        wanted = {"running": 0, "succeeded": 0, "failed": 0, **numbers}
        ours: dict[Format, Json] = {
            way: wanted | ({"admitted": admitted} if way is Format.KEP_24 else {"phase": phase}) for way in KINDS
        }

        def saying(way: Format, reason: str) -> Callable[[Json], bool]:
            return lambda one: ours[way].items() <= (one.get("status") or {}).items() and condition_of(one)[0] == reason

        each = zip(KINDS, reasons * (len(KINDS) // len(reasons)), strict=True)
        found = await asyncio.gather(*(self._stage.until_group(RING, saying(*it), it[0]) for it in each))
        for one, way in zip(found, KINDS, strict=True):
            allowed = {*podgroup_status.STATUS_FIELDS[manifests.API_GROUP[way]], podgroup_status.CONDITIONS}
            assert set(one["status"]) <= allowed
            assert names.POD_GROUP_STATE not in one["metadata"].get("annotations", {}), "its conditions say it"
        return [one["status"] for one in found]


async def pods(stage: GroupEnvironment, *numbers: int) -> None:
    for way, kind in KINDS.items():
        zone = {"kind": kind}
        await stage.create(*(manifests.pod(f"{kind}-{number}", RING, way, nodeSelector=zone) for number in numbers))


async def test_a_group_goes_through_all_phases_and_back_to_pending_when_it_is_taken_back(
    make_stage: MakeGroupEnvironment,
) -> None:
    async with make_stage(settings=SETTINGS, kubelets=True) as stage:
        reported, kubelets = Reported(stage), stage.kubelets
        assert kubelets is not None
        for way, kind in KINDS.items():
            await stage.add_node(kind, "1", labels={"kind": kind})
            await stage.make_group(RING, 2, way, wait=None if way is Format.KEP_24 else WAIT)
        await pods(stage, 0)
        for status in await reported.until("Pending", names.REASON_GATHERING, admitted=0):
            assert "scheduleStartTime" not in status
        await pods(stage, 1)
        await stage.until_bound(3)
        await reported.later(15)  # while the scheduler is at it, nothing is written
        for status in (await reported.until("Scheduling", names.REASON_PLACING, admitted=2, running=1))[:2]:
            assert set(SHORT) - {"occupiedBy"} <= set(status)
        await reported.later(WAIT)
        await reported.until("Unknown", names.REASON_ROLLBACK_BLOCKED, admitted=2, running=1)
        for kind in KINDS.values():
            for number in range(2):
                await stage.delete_pod(f"{kind}-{number}")
        back = names.REASON_ROLLED_BACK  # Koordinator knows no back-off: with its last pod it is forgotten
        for status in await reported.until("Pending", back, names.REASON_GATHERING, back, admitted=0):
            assert "scheduleStartTime" not in status
        await reported.later(10)
        for kind in KINDS.values():
            await stage.add_node(f"{kind}-more", "1", labels={"kind": kind})
        await pods(stage, 2, 3)
        await reported.until("Running", names.REASON_RUNNING, admitted=2, running=2)
        assert len(kubelets.restart(PodMatch(name="*-2", namespace=stage.namespace))) == len(KINDS)
        await reported.until("Failed", names.REASON_FAILED, admitted=2, running=1, failed=1)
        await pods(stage, 4)  # another pod replaces it
        await reported.until("Running", names.REASON_RUNNING, admitted=3, running=2, failed=1)
        kubelets.finish(PodMatch(namespace=stage.namespace))
        await reported.until("Finished", names.REASON_FINISHED, admitted=3, succeeded=2, failed=1)
