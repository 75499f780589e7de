"""One pass over a gang: first the decision, then the news, and only then the words (A6)."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from controllers.closer import Closer
from controllers.gang import GangReconciler
from controllers.gates import Gates, LookAgain
from controllers.index import Index
from controllers.keys import Key
from controllers.measures import Measures
from controllers.patches import PATIENCE, Patches
from controllers.statuses import Statuses
from jobset_gate import names, verdicts
from jobset_gate.kube.errors import Forbidden, ServerError
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, PODS
from jobset_gate.kube.store import Change
from jobset_gate.model import ConditionSeen, JobSetSeen, PodSeen
from jobset_gate.sim.clock import VirtualClock
from tests.controllers.doors import Doors
from tests.controllers.objects import store_jobset, store_pod, verdict_on
from tests.jobset_gate.gangs import job, replicated_job, verdict
from tests.jobset_gate.world.api import Api
from tests.jobset_gate.world.client import MemoryClient

TRAIN = Key("default", "train")
NAME = "train-group-scheduling"


class Desk:
    """A reconciler whose views the test sets, and all that it asked for."""

    def __init__(self, api: Api, memory: MemoryClient, doors: Doors, clock: VirtualClock) -> None:
        self.api, self.doors, self.clock = api, doors, clock
        self.index = Index(lambda _: None, lambda _, __: None)
        self.gates = Gates(memory.client, self.index)
        self.patches = Patches(memory.client, clock, concurrency=1)
        self.reconciler = GangReconciler(
            index=self.index,
            gates=self.gates,
            patches=self.patches,
            statuses=Statuses(memory.client, clock),
            closer=Closer(memory.client),
            measures=Measures(CollectorRegistry()),
            now=clock,
        )
        self.jobset = store_jobset(api)
        self.see(self.jobset)
        self.index.on_job(Change(("default", "train-workers-0"), None, job(jobset_uid=self.jobset.uid)))

    def see(self, jobset: JobSetSeen) -> None:
        self.index.on_jobset(Change(("default", "train"), None, jobset))

    def see_pod(self, index: int) -> PodSeen:
        stored = store_pod(self.api, f"pod-{index}")
        pod = msgspec.structs.replace(stored, jobset_uid=self.jobset.uid, index=index, barrier_since=self.clock())
        self.index.on_pod(Change(("default", pod.name), None, pod))
        return pod

    async def look(self) -> float | None:
        """One pass, and the patches that it asked for."""
        again = await self.reconciler.reconcile(TRAIN)
        sender = asyncio.create_task(self.patches.run())
        await asyncio.sleep(0.01)
        sender.cancel()
        await asyncio.gather(sender, return_exceptions=True)
        return again

    def asked(self) -> list[str]:
        return [f"{call.verb} {call.kind.plural}" for call in self.doors.asked]

    def gate(self) -> dict[str, str]:
        stored = self.api.get(CONFIGMAPS, NAME)
        assert stored is not None
        found: dict[str, str] = stored["data"]
        return found


@pytest.fixture
def desk(api: Api, memory: MemoryClient, doors: Doors, clock: VirtualClock) -> Desk:
    return Desk(api, memory, doors, clock)


async def test_the_decision_is_written_before_anything_is_said_of_it(desk: Desk) -> None:
    pods = [desk.see_pod(0), desk.see_pod(1)]
    await desk.look()
    assert desk.asked()[:3] == ["create configmaps", "create events", "patch jobsets"]
    assert desk.asked()[3:] == ["patch pods", "patch pods"]
    mine = verdicts.parse(desk.gate()["verdict"])
    assert mine is not None
    assert {verdict_on(desk.api, pod) for pod in pods} == {desk.gate()["verdict"]}


async def test_nothing_is_said_of_a_decision_that_could_not_be_written(desk: Desk) -> None:
    desk.see_pod(0)
    desk.see_pod(1)
    desk.doors.fail = lambda call: ServerError(500) if call.kind == CONFIGMAPS else None
    with pytest.raises(ServerError):
        await desk.look()
    assert desk.asked() == ["create configmaps"]
    assert desk.patches.depth == 0


async def test_a_gang_that_waits_has_a_gate_a_clock_and_a_time_to_look_again(desk: Desk) -> None:
    desk.see_pod(0)
    assert await desk.look() == pytest.approx(300)
    assert set(desk.gate()) == {names.KEY_WAITING_SINCE}


async def test_only_pods_whom_the_verdict_binds_are_told(desk: Desk) -> None:
    """Another replica has decided on an attempt that our view of the JobSet does not show yet."""
    of_ours = desk.see_pod(0)
    seen = desk.index.observe(TRAIN)
    assert seen is not None
    await desk.gates.keep(seen, verdict(uid=desk.jobset.uid, attempt=1), None)
    await desk.look()
    await asyncio.sleep(PATIENCE)
    await desk.look()
    assert verdict_on(desk.api, of_ours) == ""
    assert verdicts.parse(desk.gate()["verdict"]) == verdict(uid=desk.jobset.uid, attempt=1)


async def test_a_verdict_that_stands_is_put_back_when_its_configmap_is_lost(desk: Desk) -> None:
    desk.see_pod(0)
    desk.see_pod(1)
    await desk.look()
    told = desk.api.get(JOBSETS, "train")
    assert told is not None
    (condition,) = told["status"]["conditions"]
    since = ConditionSeen(
        status=condition["status"], reason=condition["reason"], message=condition["message"], since=""
    )
    desk.see(msgspec.structs.replace(desk.jobset, condition=since))
    before = verdicts.parse(desk.gate()["verdict"])
    desk.api.remove(CONFIGMAPS, NAME)
    desk.index.saw_gate(TRAIN, None)
    await desk.look()
    assert verdicts.parse(desk.gate()["verdict"]) == before


async def test_pods_that_do_not_wait_in_their_barrier_are_not_told(desk: Desk) -> None:
    waits, leaves = desk.see_pod(0), desk.see_pod(1)
    going = msgspec.structs.replace(leaves, deleting=True)
    desk.see(msgspec.structs.replace(desk.jobset, bypass=True))
    desk.index.on_pod(Change(("default", leaves.name), leaves, going))
    await desk.look()
    assert verdict_on(desk.api, waits)
    assert not verdict_on(desk.api, leaves)


@pytest.mark.parametrize("state", [{"finished": True}, {"deleting": True}, {"managed_elsewhere": True}])
async def test_a_gang_that_is_nobodys_business_is_left_in_peace(desk: Desk, state: dict[str, bool]) -> None:
    desk.see_pod(0)
    desk.see_pod(1)
    desk.see(msgspec.structs.replace(desk.jobset, **state))
    assert await desk.look() is None
    assert desk.asked() == []


async def test_a_gang_that_is_gone_is_left_in_peace(desk: Desk) -> None:
    desk.index.on_jobset(Change(("default", "train"), desk.jobset, None))
    assert await desk.look() is None
    assert desk.asked() == []


async def test_templates_without_a_barrier_get_a_condition_and_no_gate(desk: Desk) -> None:
    desk.see(msgspec.structs.replace(desk.jobset, replicated_jobs=(replicated_job(has_barrier=False),)))
    assert await desk.look() is None
    assert desk.asked() == ["create events", "patch jobsets"]


async def test_a_strangers_configmap_is_reported_and_looked_at_again(desk: Desk) -> None:
    theirs = desk.api.create(CONFIGMAPS, {"metadata": {"name": NAME}, "data": {"theirs": "x"}})
    desk.see_pod(0)
    desk.see_pod(1)
    assert await desk.look() == 0.0
    again = await desk.look()
    assert again is not None
    assert again > 1
    jobset = desk.api.get(JOBSETS, "train")
    assert jobset is not None
    assert jobset["status"]["conditions"][0]["reason"] == "ConfigMapConflict"
    assert desk.api.get(CONFIGMAPS, NAME) == theirs
    desk.api.remove(CONFIGMAPS, NAME)
    await desk.look()
    assert names.KEY_VERDICT in desk.gate()


async def test_before_a_timeout_the_api_is_asked_once_more(desk: Desk) -> None:
    desk.see_pod(0)
    await desk.look()
    await asyncio.sleep(301)
    before = len(desk.doors.asked)
    await desk.look()
    asked = desk.asked()[before:]
    assert asked.index("list pods") < asked.index("update configmaps")
    assert asked.index("list jobs") < asked.index("update configmaps")


async def test_a_timeout_that_the_api_does_not_confirm_is_not_taken(desk: Desk) -> None:
    desk.see_pod(0)
    await desk.look()
    await asyncio.sleep(301)
    desk.doors.fail = lambda call: ServerError(500) if call.kind == PODS else None
    with pytest.raises(ServerError):
        await desk.look()
    assert set(desk.gate()) == {names.KEY_WAITING_SINCE}


async def test_in_a_namespace_that_goes_nothing_is_tried_again(desk: Desk) -> None:
    cause = {"reason": "NamespaceTerminating", "message": "namespace default is being terminated"}
    desk.doors.fail = lambda call: Forbidden(403, details={"causes": [cause]}) if call.verb == "create" else None
    desk.see_pod(0)
    assert await desk.look() is None


async def test_any_other_refusal_is_an_error(desk: Desk) -> None:
    desk.doors.fail = lambda call: Forbidden(403, "Forbidden", "quota") if call.verb == "create" else None
    desk.see_pod(0)
    with pytest.raises(Forbidden):
        await desk.look()


async def test_a_loser_of_a_race_says_nothing_and_looks_again(desk: Desk) -> None:
    """Another replica has taken a verdict that this one has not seen."""
    desk.see_pod(0)
    await desk.look()
    desk.api.change(CONFIGMAPS, NAME, lambda body: body["data"].update(verdict="timeout x 0 0 TimedOut"))
    desk.see_pod(1)
    before = len(desk.doors.asked)
    with pytest.raises(LookAgain):
        await desk.look()
    assert desk.asked()[before:] == ["update configmaps", "get configmaps"]
