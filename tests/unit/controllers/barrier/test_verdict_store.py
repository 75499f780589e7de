"""A gang's ConfigMap is created, changed by compare-and-swap only, and never taken from an unknown pod (A6.1, A10)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controllers.barrier.cache import GangCache
from controllers.barrier.verdict_store import ConfigMapConflict, VerdictStore
from jobset_gate import names
from jobset_gate.barrier.model import ConfigMapSeen, GangKey, GangSnapshot, VerdictKind, WorkloadSeen
from jobset_gate.kube.errors import Invalid
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS
from jobset_gate.runtime.store import ObjectChange, Store
from jobset_gate.runtime.workqueue import Requeue
from jobset_gate.sources import decode
from tests.fakes.call_blocker import CallBlocker
from tests.fakes.gangs import clock, gang, verdict
from tests.fakes.memory_api import Api, Json
from tests.fakes.memory_client import MemoryClient
from tests.fakes.present import present
from tests.fakes.stored_objects import store_jobset
from tests.fakes.wire_objects import read_config_map

TRAIN = GangKey("default", "train")
NAME = "train-group-scheduling"


class StoreHarness:
    """Gates of a controller whose views the test sets."""

    def __init__(self, api: Api, memory: MemoryClient, calls: CallBlocker) -> None:
        self.api, self.calls = api, calls
        self.index = GangCache(lambda _: None, lambda _, __: None)
        self.store = Store(decode.config_map)
        self.gates = VerdictStore(memory.client, self.index, self.store)
        self.jobset = self.learn(store_jobset(api))

    def learn(self, jobset: WorkloadSeen) -> WorkloadSeen:
        self.index.on_workload(ObjectChange(("default", "train"), None, jobset))
        return jobset

    def seen(self, gate: ConfigMapSeen | None = None) -> GangSnapshot:
        return gang(workload=self.jobset, config_map=gate or self.known())

    def known(self) -> ConfigMapSeen | None:
        seen = self.index.snapshot(TRAIN)
        return None if seen is None else seen.config_map

    def stored(self) -> Json:
        return self.api.known(CONFIGMAPS, NAME)

    def live(self) -> ConfigMapSeen:
        return present(read_config_map(self.stored()))

    def edit(self, change: Callable[[Json], object]) -> None:
        """Another client writes, and no watch has reported."""
        self.api.change(CONFIGMAPS, NAME, change)


@pytest.fixture
def harness(api: Api, memory: MemoryClient, api_calls: CallBlocker) -> StoreHarness:
    return StoreHarness(api, memory, api_calls)


async def test_a_missing_gate_is_created_empty(harness: StoreHarness) -> None:
    await harness.gates.ensure_config_map(harness.seen(), None, None)
    stored = harness.stored()
    assert stored["data"] == {}
    assert stored["metadata"]["labels"][names.GATE] == "true"
    assert stored["metadata"]["annotations"] == {names.JOBSET_UID: harness.jobset.uid}
    (owner,) = stored["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("JobSet", harness.jobset.uid, False)
    assert "blockOwnerDeletion" not in owner, "a gate never holds up the deletion of its JobSet"
    assert harness.known() == harness.live()


async def test_a_gate_that_holds_what_it_should_is_not_written(harness: StoreHarness) -> None:
    mine = verdict(uid=harness.jobset.uid)
    await harness.gates.ensure_config_map(harness.seen(), mine, clock(uid=harness.jobset.uid))
    before = len(harness.calls.calls)
    await harness.gates.ensure_config_map(harness.seen(), mine, clock(uid=harness.jobset.uid))
    assert len(harness.calls.calls) == before


async def test_of_two_verdicts_the_first_written_stands(harness: StoreHarness) -> None:
    """One winner per generation: the other looks again and finds it."""
    await harness.gates.ensure_config_map(harness.seen(), None, None)
    old = harness.seen()
    winner = verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, uid=harness.jobset.uid)
    await harness.gates.ensure_config_map(old, winner, None)
    with pytest.raises(Requeue):
        await harness.gates.ensure_config_map(old, verdict(uid=harness.jobset.uid), None)
    assert harness.live().verdict == winner
    assert harness.known() == harness.live(), "the loser has seen the winner's"


@pytest.mark.parametrize(
    "damage",
    [
        lambda body: body.update(data={"verdict": "open sesame"}),
        lambda body: body["metadata"].update(ownerReferences=[]),
        lambda body: body.update(data={"more": "words"}),
        lambda body: body.update(data={"waiting-since": "u-1 0 0 0001-01-01T00:00:00+14:00"}),
    ],
)
async def test_an_edited_gate_is_put_right(harness: StoreHarness, damage: Callable[[Json], object]) -> None:
    await harness.gates.ensure_config_map(harness.seen(), None, None)
    harness.edit(damage)
    await harness.gates.ensure_config_map(harness.seen(harness.live()), None, None)
    assert harness.live().canonical


@pytest.mark.parametrize(("field", "again"), [("immutable", True), ("data", False)])
async def test_a_gate_that_is_immutable_is_created_again_and_one_that_a_policy_shuts_is_not(
    harness: StoreHarness, field: str, *, again: bool
) -> None:
    await harness.gates.ensure_config_map(harness.seen(), None, None)
    there = harness.stored()
    refused = Invalid(422, "Invalid", "no", details={"causes": [{"field": field}]})
    harness.calls.fail = lambda call: refused if call.verb == "update" else None
    mine = verdict(uid=harness.jobset.uid)
    with pytest.raises(Requeue if again else Invalid):
        await harness.gates.ensure_config_map(harness.seen(), mine, None)
    if not again:
        assert harness.stored() == there
        return
    await harness.gates.ensure_config_map(harness.seen(), mine, None)
    assert harness.live().verdict == mine
    assert harness.live().uid != there["metadata"]["uid"]


async def test_a_configmap_of_ours_that_no_watch_showed_is_found(harness: StoreHarness) -> None:
    """From before a crash, or another replica's."""
    await harness.gates.ensure_config_map(harness.seen(), verdict(uid=harness.jobset.uid), None)
    there = harness.stored()
    harness.index.set_config_map(TRAIN, None)
    with pytest.raises(Requeue) as again:
        await harness.gates.ensure_config_map(harness.seen(), None, None)
    assert not isinstance(again.value, ConfigMapConflict)
    assert harness.known() == harness.live()
    assert harness.stored() == there


async def test_an_unrelated_configmap_is_neither_adopted_nor_overwritten(harness: StoreHarness) -> None:
    theirs = harness.api.create(CONFIGMAPS, {"metadata": {"name": NAME}, "data": {"theirs": "x"}})
    with pytest.raises(ConfigMapConflict):
        await harness.gates.ensure_config_map(harness.seen(), None, None)
    assert harness.stored() == theirs
    seen = present(harness.index.snapshot(TRAIN))
    assert seen.config_map_conflict


async def test_the_gate_of_a_later_life_is_left_alone_by_a_controller_that_still_sees_the_earlier(
    harness: StoreHarness,
) -> None:
    earlier = harness.jobset
    harness.api.remove(JOBSETS, "train")
    harness.jobset = harness.learn(store_jobset(harness.api))
    await harness.gates.ensure_config_map(harness.seen(), verdict(uid=harness.jobset.uid), None)
    there = harness.stored()
    harness.jobset = earlier
    with pytest.raises(Requeue):
        await harness.gates.ensure_config_map(harness.seen(harness.live()), None, None)
    assert harness.stored() == there


async def test_an_earlier_gate_that_changed_meanwhile_is_not_removed_blindly(harness: StoreHarness) -> None:
    await harness.gates.ensure_config_map(harness.seen(), None, None)
    left = harness.live()
    harness.edit(lambda body: body.update(data={"more": "words"}))
    harness.api.remove(JOBSETS, "train")
    harness.jobset = harness.learn(store_jobset(harness.api))
    with pytest.raises(Requeue):
        await harness.gates.ensure_config_map(harness.seen(left), None, None)
    assert harness.stored()["data"] == {"more": "words"}
