"""The status of a PodGroup: only fields that its CRD has, only what changed, nothing in another's status (G5)."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import msgspec
import pytest

from controllers.podgroups.status import QUIET_SECONDS
from controllers.podgroups.status_writer import PROGRESS_SECONDS, SETTLE_SECONDS
from jobset_gate import names
from jobset_gate.fake.clock import VirtualClock
from jobset_gate.kube.errors import Conflict, NotFound
from jobset_gate.podgroups import crds
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.snapshot import GroupSnapshot, RecordRef
from tests.fakes.podgroups.objects import config_map, key, pod, record
from tests.fakes.podgroups.snapshots import KEP24_KEY, bound, group_snapshot, kep24_pod, opened
from tests.fakes.podgroups.sources import Json
from tests.fakes.podgroups.status_api import StatusApi, StatusHarness, status_harness

G = key()
ROOM = GroupReason(reason=names.REASON_WAITING_FOR_CAPACITY, message="needs 4 cpu, 2 free")
A_WHILE = SETTLE_SECONDS + 0.1


@pytest.fixture
def board() -> StatusApi:
    return StatusApi()


def seen(board: StatusApi, *pods: Json, of: PodGroupKey = G, **more: Any) -> GroupSnapshot:
    """The group, with its PodGroup as the watch shows it by now."""
    return group_snapshot(*pods, of=of, group=copy.deepcopy(board.group), **more)


async def settled(at: StatusHarness, shown: GroupSnapshot, why: GroupReason | None = None) -> None:
    """Looked at, and time for all that may be written at once."""
    at.report_group(shown, why)
    await asyncio.sleep(A_WHILE)


async def test_all_fields_of_the_kind_are_written_at_once_and_a_condition(
    board: StatusApi, clock: VirtualClock
) -> None:
    async with status_harness(board, clock) as at:
        await settled(at, seen(board, pod("a"), pod("b")))
        assert board.status == {
            "phase": "Pending",
            "running": 0,
            "succeeded": 0,
            "failed": 0,
            "conditions": [
                {
                    "type": "GangSatisfied",
                    "status": "False",
                    "reason": "Gathering",
                    "message": "2/3 pods exist",
                    "lastTransitionTime": "2026-01-01T00:00:01Z",
                }
            ],
        }
        assert [what for what, _ in board.writes] == ["status"]


async def test_nothing_is_written_when_nothing_has_changed(board: StatusApi, clock: VirtualClock) -> None:
    async with status_harness(board, clock) as at:
        before = seen(board, pod("a"))
        await settled(at, before)
        for _ in range(3):
            await settled(at, before)  # the watch lags
            await settled(at, seen(board, pod("a")))
        assert len(board.writes) == 1


async def test_only_what_has_changed_is_in_the_patch(board: StatusApi, clock: VirtualClock) -> None:
    async with status_harness(board, clock) as at:
        await settled(at, seen(board, pod("a")))
        done = record((G, 1), satisfied=clock(), minimum=1)
        await settled(at, seen(board, bound("a"), record=done))
        what, body = [it for it in board.writes if it[0] == "status"][-1]
        assert (what, set(body["status"])) == ("status", {"phase", "running", "scheduleStartTime", "conditions"})
        assert set(body["metadata"]) == {"resourceVersion"}
        assert (board.status["phase"], board.condition["status"]) == ("Running", "True")


async def test_a_group_that_closes_again_loses_its_start_time(board: StatusApi, clock: VirtualClock) -> None:
    async with status_harness(board, clock) as at:
        await settled(at, seen(board, bound("a"), record=record((G, 1), satisfied=clock(), minimum=1)))
        assert board.status["scheduleStartTime"] == "2026-08-01T10:00:00Z"
        await settled(at, seen(board))
        assert "scheduleStartTime" not in board.status
        assert board.status["phase"] == "Pending"


async def test_the_fields_of_kep_24_are_others(board: StatusApi, clock: VirtualClock) -> None:
    board.crd = crds.manifest(names.KEP24_GROUP)
    notes = {names.POD_GROUP_OPENED: "1 2026-08-01T10:00:00Z", "scheduling.k8s.io/group-name": "g"}
    pods = [kep24_pod(it, gates=(), meta={"annotations": notes}) for it in "ab"]
    board.group["spec"] = {"minMembers": 2}
    async with status_harness(board, clock) as at:
        await settled(at, seen(board, *pods, of=KEP24_KEY, record=record((KEP24_KEY, 1), satisfied=clock(), minimum=2)))
        values = {key: value for key, value in board.status.items() if key != "conditions"}
        assert values == {"admitted": 2, "running": 0, "succeeded": 0, "failed": 0}


async def test_what_a_foreign_crd_has_no_field_for_is_left_out_and_said_by_annotation(
    board: StatusApi, clock: VirtualClock
) -> None:
    assert board.crd is not None
    fields = board.crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    for name in ("conditions", "occupiedBy", "scheduleStartTime", "failed"):
        del fields[name]
    async with status_harness(board, clock) as at:
        await settled(at, seen(board, pod("a")), ROOM)
        assert board.status == {"phase": "Pending", "running": 0, "succeeded": 0}
        assert board.notes[names.POD_GROUP_STATE] == "Pending: WaitingForCapacity: needs 4 cpu, 2 free"


async def test_a_field_that_some_crds_have_besides_is_filled(board: StatusApi, clock: VirtualClock) -> None:
    assert board.crd is not None
    fields = board.crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    fields["scheduled"] = {"type": "integer"}
    async with status_harness(board, clock) as at:
        await settled(at, seen(board, bound("a"), record=record((G, 1), satisfied=clock(), minimum=1)))
        assert board.status["scheduled"] == 1


async def test_without_a_right_to_see_the_crd_the_designs_own_fields_are_written(
    board: StatusApi, clock: VirtualClock
) -> None:
    board.crd = None
    async with status_harness(board, clock) as at:
        await settled(at, seen(board, pod("a")))
        assert board.status == {"phase": "Pending", "running": 0, "succeeded": 0, "failed": 0}
        assert board.notes[names.POD_GROUP_STATE] == "Pending: Gathering: 1/3 pods exist"


async def test_a_crd_without_a_status_of_its_own_gets_the_annotation_only(
    board: StatusApi, clock: VirtualClock
) -> None:
    assert board.crd is not None
    del board.crd["spec"]["versions"][0]["subresources"]
    async with status_harness(board, clock) as at:
        await settled(at, seen(board, pod("a")))
        assert board.status == {}
        assert names.POD_GROUP_STATE in board.notes


async def test_the_conditions_of_others_stay(board: StatusApi, clock: VirtualClock) -> None:
    theirs = {"type": "Theirs", "status": "True"}
    board.group["status"] = {"conditions": [theirs]}
    async with status_harness(board, clock) as at:
        await settled(at, seen(board, pod("a")))
        assert [it["type"] for it in board.status["conditions"]] == ["Theirs", names.POD_GROUP_CONDITION]


# --- How often --------------------------------------------------------------------------------------------------------


async def test_while_the_pods_are_placed_nothing_is_written(board: StatusApi, clock: VirtualClock) -> None:
    async with status_harness(board, clock) as at:
        decided = msgspec.structs.replace(record((G, 1)), at=clock())
        await settled(at, seen(board, pod("a")))  # words that were due before the decision
        board.writes.clear()
        at.report_group(seen(board, pod("a"), pod("b")), ROOM)
        for _ in range(7):
            await settled(at, seen(board, opened("a"), opened("b"), opened("c"), record=decided))
        assert board.writes == []
        await asyncio.sleep(QUIET_SECONDS)
        assert [what for what, _ in board.writes if what == "status"] == ["status"]


async def test_numbers_alone_are_written_every_quarter_of_a_minute(board: StatusApi, clock: VirtualClock) -> None:
    async with status_harness(board, clock) as at:
        await settled(at, seen(board, pod("a")))
        began = clock()
        for count in range(2, 8):
            pods = [pod(f"p{number}") for number in range(count)]
            await settled(at, seen(board, *pods, record=None), GroupReason(reason="Gathering", message=f"{count}/9"))
        assert len(board.writes) == 1
        await asyncio.sleep(PROGRESS_SECONDS)
        assert board.condition["message"] == "7/9"
        assert clock() - began > PROGRESS_SECONDS
        await settled(at, seen(board, pod("a")), ROOM)
        assert board.condition["reason"] == "WaitingForCapacity"


# --- Others ----------------------------------------------------------------------------------------------------------


async def test_a_status_that_another_controller_manages_is_never_written(board: StatusApi, clock: VirtualClock) -> None:
    board.group["metadata"]["managedFields"] = [{"manager": "coscheduler", "subresource": "status"}]
    board.group["status"] = {"phase": "Scheduling"}
    async with status_harness(board, clock) as at:
        await settled(at, seen(board, pod("a")), ROOM)
        assert board.status == {"phase": "Scheduling"}
        assert board.notes[names.POD_GROUP_STATE] == "Pending: WaitingForCapacity: needs 4 cpu, 2 free"
        assert (names.REASON_STATUS_NOT_OURS, "g") in board.event_list()


async def test_who_changes_what_we_wrote_twice_has_the_status(board: StatusApi, clock: VirtualClock) -> None:
    async with status_harness(board, clock) as at:
        for _ in range(2):
            await settled(at, seen(board, pod("a")), ROOM)
            assert board.status["phase"] == "Pending"
            board.write_as_other(phase="Unknown", running=9)
            await settled(at, seen(board, pod("a")), ROOM)
            await asyncio.sleep(PROGRESS_SECONDS)
        written = len([what for what, _ in board.writes if what == "status"])
        board.write_as_other(phase="Unknown", running=9)
        for _ in range(3):
            await settled(at, seen(board, pod("a")), ROOM)
            await asyncio.sleep(PROGRESS_SECONDS)
        assert len([what for what, _ in board.writes if what == "status"]) == written
        assert board.status["phase"] == "Unknown"
        assert (names.REASON_STATUS_NOT_OURS, "g") in board.event_list()


@pytest.mark.parametrize("refusal", [NotFound(404, "NotFound", ""), Conflict(409, "Conflict", "")])
async def test_a_group_that_has_gone_meanwhile_is_no_failure(
    board: StatusApi, clock: VirtualClock, refusal: Exception
) -> None:
    board.fail = lambda what: refusal if what == "status" else None  # type: ignore[return-value,assignment]
    async with status_harness(board, clock) as at:
        await settled(at, seen(board, pod("a")))
        assert (at.failures, board.status) == (0, {})


async def test_a_pod_group_made_meanwhile_under_the_same_name_keeps_its_own_status(
    board: StatusApi, clock: VirtualClock
) -> None:
    async with status_harness(board, clock) as at:
        shown = seen(board, pod("a"))
        board.group = {**board.group, "metadata": {**board.group["metadata"], "uid": "another", "resourceVersion": "9"}}
        await settled(at, shown)
        assert (at.failures, board.status, board.notes) == (0, {}, {})


async def test_a_status_is_written_though_the_pod_group_changed_before_the_watch_told(
    board: StatusApi, clock: VirtualClock
) -> None:
    async with status_harness(board, clock) as at:
        shown = seen(board, pod("a"))
        board.write_as_other(occupiedBy="default/train")
        await settled(at, shown)
        assert board.status["phase"] == "Pending"


async def test_a_group_without_a_pod_group_says_it_on_the_configmap_of_its_record(
    board: StatusApi, clock: VirtualClock
) -> None:
    board.map = config_map(key())
    home = RecordRef(api="", namespace="team", name=board.map["metadata"]["name"], uid="uid-map", resource_version="5")
    shown = msgspec.structs.replace(group_snapshot(pod("a")), record_ref=home)
    async with status_harness(board, clock) as at:
        await settled(at, shown, ROOM)
        assert board.map["metadata"]["annotations"][names.POD_GROUP_STATE].endswith("needs 4 cpu, 2 free")
        await settled(at, shown, ROOM)
        assert [what for what, _ in board.writes].count("annotations") == 1
