"""A gang's ConfigMap is created, changed by compare-and-swap only, and never taken from a stranger (A6.1, A10)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from controllers.barrier.cache import GangCache
from controllers.barrier.verdict_store import ConfigMapConflict, VerdictStore
from jobset_gate import names
from jobset_gate.barrier import decode, verdict_codec, wire
from jobset_gate.barrier.model import ConfigMapSeen, GangKey, GangSnapshot, JobSetSeen, VerdictKind
from jobset_gate.kube.errors import Invalid
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS
from jobset_gate.runtime.store import MutationCache, ObjectChange, Store
from jobset_gate.runtime.workqueue import Requeue
from tests.fakes.call_blocker import CallBlocker
from tests.fakes.gangs import clock, gang, verdict
from tests.fakes.memory_api import Api, Json
from tests.fakes.memory_client import MemoryClient
from tests.fakes.stored_objects import store_jobset

TRAIN = GangKey("default", "train")
NAME = "train-group-scheduling"


class StoreHarness:
    """Gates of a controller whose views the test sets."""

    def __init__(self, api: Api, memory: MemoryClient) -> None:
        self.api = api
        self.index = GangCache(lambda _: None, lambda _, __: None)
        self.store: Store[ConfigMapSeen] = Store()
        self.gates = VerdictStore(memory.client, self.index, MutationCache(self.store, decode.config_map))
        self.jobset = self.learn(store_jobset(api))

    def learn(self, jobset: JobSetSeen) -> JobSetSeen:
        self.index.on_jobset(ObjectChange(("default", "train"), None, jobset))
        return jobset

    def seen(self, gate: ConfigMapSeen | None = None) -> GangSnapshot:
        return gang(jobset=self.jobset, config_map=gate or self.known())

    def known(self) -> ConfigMapSeen | None:
        seen = self.index.snapshot(TRAIN)
        return None if seen is None else seen.config_map

    def stored(self) -> Json:
        found = self.api.get(CONFIGMAPS, NAME)
        assert found is not None
        return found

    def live(self) -> ConfigMapSeen:
        gate = decode.config_map(msgspec.convert(self.stored(), wire.ConfigMap))
        assert gate is not None
        return gate

    def edit(self, change: Callable[[Json], object]) -> None:
        """Somebody else writes, and no watch has told."""
        self.api.change(CONFIGMAPS, NAME, change)


@pytest.fixture
def keeper(api: Api, memory: MemoryClient) -> StoreHarness:
    return StoreHarness(api, memory)


async def test_a_missing_gate_is_created_empty(keeper: StoreHarness) -> None:
    await keeper.gates.ensure_config_map(keeper.seen(), None, None)
    stored = keeper.stored()
    assert stored["data"] == {}
    assert stored["metadata"]["labels"][names.GATE] == "true"
    assert stored["metadata"]["annotations"] == {names.JOBSET_UID: keeper.jobset.uid}
    (owner,) = stored["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("JobSet", keeper.jobset.uid, False)
    assert "blockOwnerDeletion" not in owner, "a gate never holds up the deletion of its JobSet"
    assert keeper.known() == keeper.live()


async def test_a_gate_that_holds_what_it_should_is_not_written(keeper: StoreHarness, doors: CallBlocker) -> None:
    mine = verdict(uid=keeper.jobset.uid)
    await keeper.gates.ensure_config_map(keeper.seen(), mine, clock(uid=keeper.jobset.uid))
    before = len(doors.calls)
    await keeper.gates.ensure_config_map(keeper.seen(), mine, clock(uid=keeper.jobset.uid))
    assert len(doors.calls) == before


async def test_verdict_and_clock_are_written_together(keeper: StoreHarness) -> None:
    await keeper.gates.ensure_config_map(keeper.seen(), None, None)
    mine, since = verdict(uid=keeper.jobset.uid), clock(uid=keeper.jobset.uid)
    await keeper.gates.ensure_config_map(keeper.seen(), mine, since)
    assert keeper.stored()["data"] == {
        "verdict": verdict_codec.render(mine),
        "waiting-since": verdict_codec.render_clock(since),
    }
    assert keeper.live().canonical


async def test_of_two_verdicts_the_first_written_stands(keeper: StoreHarness) -> None:
    """One winner per generation: the other looks again and finds it."""
    await keeper.gates.ensure_config_map(keeper.seen(), None, None)
    old = keeper.seen()
    winner = verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, uid=keeper.jobset.uid)
    await keeper.gates.ensure_config_map(old, winner, None)
    with pytest.raises(Requeue):
        await keeper.gates.ensure_config_map(old, verdict(uid=keeper.jobset.uid), None)
    assert keeper.live().verdict == winner
    assert keeper.known() == keeper.live(), "the loser has seen the winner's"


async def test_a_gate_that_somebody_touched_meanwhile_is_looked_at_first(keeper: StoreHarness) -> None:
    await keeper.gates.ensure_config_map(keeper.seen(), None, None)
    keeper.edit(lambda body: body.update(data={"more": "words"}))
    with pytest.raises(Requeue):
        await keeper.gates.ensure_config_map(keeper.seen(), verdict(uid=keeper.jobset.uid), None)
    await keeper.gates.ensure_config_map(keeper.seen(), verdict(uid=keeper.jobset.uid), None)
    assert set(keeper.stored()["data"]) == {"verdict"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda body: body.update(data={"verdict": "open sesame"}),
        lambda body: body["metadata"].update(ownerReferences=[]),
        lambda body: body.update(data={"more": "words"}),
        lambda body: body.update(data={"waiting-since": "u-1 0 0 0001-01-01T00:00:00+14:00"}),
    ],
)
async def test_an_edited_gate_is_put_right(keeper: StoreHarness, damage: Callable[[Json], object]) -> None:
    await keeper.gates.ensure_config_map(keeper.seen(), None, None)
    keeper.edit(damage)
    await keeper.gates.ensure_config_map(keeper.seen(keeper.live()), None, None)
    assert keeper.live().canonical


@pytest.mark.parametrize(("field", "anew"), [("immutable", True), ("data", False)])
async def test_a_gate_that_is_immutable_is_made_anew_and_one_that_a_policy_shuts_is_not(
    keeper: StoreHarness, doors: CallBlocker, field: str, *, anew: bool
) -> None:
    await keeper.gates.ensure_config_map(keeper.seen(), None, None)
    there = keeper.stored()
    refused = Invalid(422, "Invalid", "no", details={"causes": [{"field": field}]})
    doors.fail = lambda call: refused if call.verb == "update" else None
    mine = verdict(uid=keeper.jobset.uid)
    with pytest.raises(Requeue if anew else Invalid):
        await keeper.gates.ensure_config_map(keeper.seen(), mine, None)
    if not anew:
        assert keeper.stored() == there
        return
    await keeper.gates.ensure_config_map(keeper.seen(), mine, None)
    assert keeper.live().verdict == mine
    assert keeper.live().uid != there["metadata"]["uid"]


async def test_a_gate_deleted_meanwhile_is_made_anew_on_the_next_look(keeper: StoreHarness, api: Api) -> None:
    await keeper.gates.ensure_config_map(keeper.seen(), None, None)
    api.remove(CONFIGMAPS, NAME)
    with pytest.raises(Requeue):
        await keeper.gates.ensure_config_map(keeper.seen(), verdict(uid=keeper.jobset.uid), None)
    assert keeper.known() is None
    await keeper.gates.ensure_config_map(keeper.seen(), verdict(uid=keeper.jobset.uid), None)
    assert keeper.live().verdict == verdict(uid=keeper.jobset.uid)


async def test_a_gate_of_ours_that_nobody_told_us_of_is_found(
    keeper: StoreHarness, memory: MemoryClient, api: Api
) -> None:
    """From before a crash, or another replica's."""
    await keeper.gates.ensure_config_map(keeper.seen(), verdict(uid=keeper.jobset.uid), None)
    there = keeper.stored()
    keeper.index.set_config_map(TRAIN, None)
    with pytest.raises(Requeue) as again:
        await keeper.gates.ensure_config_map(keeper.seen(), None, None)
    assert not isinstance(again.value, ConfigMapConflict)
    assert keeper.known() == keeper.live()
    assert keeper.stored() == there


async def test_a_strangers_configmap_is_neither_adopted_nor_overwritten(keeper: StoreHarness, api: Api) -> None:
    theirs = api.create(CONFIGMAPS, {"metadata": {"name": NAME}, "data": {"theirs": "x"}})
    with pytest.raises(ConfigMapConflict):
        await keeper.gates.ensure_config_map(keeper.seen(), None, None)
    assert keeper.stored() == theirs
    seen = keeper.index.snapshot(TRAIN)
    assert seen is not None
    assert seen.config_map_conflict


async def test_a_gate_that_was_disowned_is_a_strangers(keeper: StoreHarness) -> None:
    await keeper.gates.ensure_config_map(keeper.seen(), None, None)
    keeper.edit(lambda body: body["metadata"].update(labels={}))
    with pytest.raises(ConfigMapConflict):
        await keeper.gates.ensure_config_map(keeper.seen(), verdict(uid=keeper.jobset.uid), None)
    assert keeper.stored()["data"] == {}


async def test_the_gate_of_an_earlier_life_is_removed_and_made_anew(keeper: StoreHarness, api: Api) -> None:
    await keeper.gates.ensure_config_map(keeper.seen(), verdict(uid=keeper.jobset.uid), None)
    left = keeper.live()
    api.remove(JOBSETS, "train")
    keeper.jobset = keeper.learn(store_jobset(api))
    await keeper.gates.ensure_config_map(keeper.seen(left), None, None)
    assert keeper.live().uid != left.uid
    assert (keeper.live().jobset_uid, keeper.live().verdict) == (keeper.jobset.uid, None)


async def test_the_gate_of_a_later_life_is_left_alone_by_whoever_still_sees_the_earlier(
    keeper: StoreHarness, api: Api
) -> None:
    earlier = keeper.jobset
    api.remove(JOBSETS, "train")
    keeper.jobset = keeper.learn(store_jobset(api))
    await keeper.gates.ensure_config_map(keeper.seen(), verdict(uid=keeper.jobset.uid), None)
    there = keeper.stored()
    keeper.jobset = earlier
    with pytest.raises(Requeue):
        await keeper.gates.ensure_config_map(keeper.seen(keeper.live()), None, None)
    assert keeper.stored() == there


async def test_the_gate_of_a_jobset_that_is_gone_is_left_to_the_garbage_collector(
    keeper: StoreHarness, api: Api
) -> None:
    await keeper.gates.ensure_config_map(keeper.seen(), None, None)
    foreign_life = msgspec.structs.replace(keeper.live(), jobset_uid="u-0")
    api.remove(JOBSETS, "train")
    with pytest.raises(Requeue):
        await keeper.gates.ensure_config_map(keeper.seen(foreign_life), None, None)
    assert keeper.stored()


async def test_an_earlier_gate_that_changed_meanwhile_is_not_removed_blindly(keeper: StoreHarness, api: Api) -> None:
    await keeper.gates.ensure_config_map(keeper.seen(), None, None)
    left = keeper.live()
    keeper.edit(lambda body: body.update(data={"more": "words"}))
    api.remove(JOBSETS, "train")
    keeper.jobset = keeper.learn(store_jobset(api))
    with pytest.raises(Requeue):
        await keeper.gates.ensure_config_map(keeper.seen(left), None, None)
    assert keeper.stored()["data"] == {"more": "words"}
