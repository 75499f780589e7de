"""One pass over a gang: first the decision, then the news, and only then the words (A6)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from controllers.barrier import quota_denials
from controllers.barrier.cache import GangCache
from controllers.barrier.live_reader import LiveReader
from controllers.barrier.metrics import GangMetrics
from controllers.barrier.reconciler import GangReconciler
from controllers.barrier.status import PROGRESS_INTERVAL, ConditionWriter, GangStatusWriter
from controllers.barrier.stream.delivery import DeliveryLog
from controllers.barrier.stream.registry import WaiterRegistry
from controllers.barrier.verdict_patcher import CONFIG_MAP_GRACE, DELIVERY_GRACE, VerdictPatcher
from controllers.barrier.verdict_store import VerdictStore
from jobset_gate import names
from jobset_gate.barrier import decode, messages, verdict_codec, wire
from jobset_gate.barrier.model import (
    BarrierStage,
    ConditionSeen,
    ConfigMapSeen,
    GangKey,
    GangSnapshot,
    Generation,
    JobSetSeen,
    PodSeen,
    VerdictKind,
)
from jobset_gate.fake.clock import VirtualClock
from jobset_gate.kube.errors import Forbidden, InvalidResponse, KubeError, ServerError, Unreachable
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, PODS
from jobset_gate.runtime.controller import Controller, ControllerMetrics
from jobset_gate.runtime.store import MutationCache, ObjectChange, Store
from jobset_gate.runtime.workqueue import Requeue, WorkQueue
from tests.fakes import gangs
from tests.fakes.call_blocker import CallBlocker
from tests.fakes.gangs import job, replicated_job, verdict
from tests.fakes.memory_api import Api, Json
from tests.fakes.memory_client import Call, MemoryClient
from tests.fakes.stored_objects import notes, store_jobset, store_pod, verdict_on, version_of
from tests.unit.controllers.barrier.test_live_reader import tell

TRAIN = GangKey("default", "train")
NAME = "train-group-scheduling"


@dataclass
class WallClock:
    """One that somebody may set."""

    true: VirtualClock
    ahead: float = 0.0

    def __call__(self) -> float:
        return self.true() + self.ahead


class ReconcilerHarness:
    """A reconciler whose views the test sets, and all that it asked for."""

    def __init__(self, api: Api, memory: MemoryClient, doors: CallBlocker, true: VirtualClock) -> None:
        self.api, self.doors = api, doors
        clock = self.clock = WallClock(true)
        told = DeliveryLog()
        self.index = GangCache(lambda _: None, lambda _, __: None, told)
        self.gates = VerdictStore(memory.client, self.index, MutationCache(Store(), decode.config_map))
        self.book = WaiterRegistry(self.index, clock, told)
        self.patches = VerdictPatcher(memory.client, concurrency=1, delivered=told)
        words: WorkQueue[GangKey] = WorkQueue()
        heralds = GangStatusWriter(ConditionWriter(memory.client, clock, version=version_of(api)), words)
        self.words = Controller("status", words, heralds.reconcile, ControllerMetrics(CollectorRegistry()), workers=1)
        self.reconciler = GangReconciler(
            cache=self.index,
            verdict_store=self.gates,
            waiters=self.book,
            patcher=self.patches,
            status=heralds,
            live_reader=LiveReader(memory.client),
            metrics=GangMetrics(CollectorRegistry()),
            now=clock,
        )
        self.jobset = msgspec.structs.replace(store_jobset(api), token="t0ken")
        self.set_jobset(self.jobset)
        self.index.on_job(ObjectChange(("default", "train-workers-0"), None, job(jobset_uid=self.jobset.uid)))

    def set_jobset(self, jobset: JobSetSeen) -> None:
        self.index.on_jobset(ObjectChange(("default", "train"), None, jobset))

    def add_pod(self, index: int, **changes: Any) -> PodSeen:
        stored = store_pod(self.api, f"pod-{index}")
        known = {"jobset_uid": self.jobset.uid, "index": index, "barrier_since": self.clock()}
        pod = msgspec.structs.replace(stored, **(known | changes))
        self.index.on_pod(ObjectChange(("default", pod.name), None, pod))
        return pod

    def ask(self, *pods: PodSeen, gone: bool = False) -> list[tuple[str, str, tuple[str, ...]]]:
        """These pods hold requests open: what each will hear, and what was asked of the API by then."""
        heard: list[tuple[str, str, tuple[str, ...]]] = []
        for pod in pods:
            client = OrderedPeer(self, pod.uid, heard, gone=gone)
            request = self.book.admit_request(TRAIN, "t0ken", Generation(self.jobset.uid, 0, 0), pod.uid, client)
            if gone:
                asyncio.get_running_loop().call_later(0.005, self.book.remove_request, request)
        return heard

    def add_config_map(self, data: Json) -> None:
        """Stored with this in it, and known."""
        uid = self.jobset.uid
        meta = {"name": NAME, "labels": {names.GATE: names.GATE_VALUE}, "annotations": {names.JOBSET_UID: uid}}
        stored = self.api.create(CONFIGMAPS, {"metadata": meta, "data": data})
        self.index.set_config_map(TRAIN, decode.config_map(msgspec.convert(stored, wire.ConfigMap)))

    def edit(self, verdict: str | None, clock: str = "") -> ConfigMapSeen | None:
        """Somebody writes this into the ConfigMap; how that looks."""
        data = ({names.KEY_VERDICT: verdict} if verdict else {}) | ({names.KEY_WAITING_SINCE: clock} if clock else {})
        stored = self.api.change(CONFIGMAPS, NAME, lambda body: body["data"].update(data))
        return decode.config_map(msgspec.convert(stored, wire.ConfigMap))

    def jobset_in_api(self) -> JobSetSeen:
        """As far as we have written it: with its condition."""
        stored = self.api.get(JOBSETS, "train")
        assert stored is not None
        (now,) = stored["status"]["conditions"]
        told = ConditionSeen(status=now["status"], reason=now["reason"], message=now["message"], since="")
        return msgspec.structs.replace(self.jobset, condition=told)

    async def reconcile(self) -> float | None:
        """One pass, the patches that it asked for, and then the words."""
        again = await self.reconciler.reconcile(TRAIN)
        for work in (self.patches.run(), self.words.run()):
            worker = asyncio.create_task(work)
            await asyncio.sleep(0.01)
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
        return again

    def asked(self) -> list[str]:
        return [f"{call.verb} {call.kind.plural}" for call in self.doors.calls]

    def config_map_data(self) -> dict[str, str]:
        stored = self.api.get(CONFIGMAPS, NAME)
        assert stored is not None
        found: dict[str, str] = stored["data"]
        return found


@dataclass(frozen=True, slots=True)
class OrderedPeer:
    """A pod's end of the gate stream."""

    desk: ReconcilerHarness
    pod: str
    heard: list[tuple[str, str, tuple[str, ...]]]
    gone: bool

    def send_answer(self, text: bytes) -> bool:
        self.heard.append((self.pod, text.decode(), tuple(self.desk.asked())))
        return not self.gone

    def finish(self) -> None:
        """The test does not mind."""

    def disconnect(self) -> None:
        self.heard.append((self.pod, "dropped", tuple(self.desk.asked())))


@pytest.fixture
def desk(api: Api, memory: MemoryClient, doors: CallBlocker, clock: VirtualClock) -> ReconcilerHarness:
    return ReconcilerHarness(api, memory, doors, clock)


async def test_the_decision_is_written_before_anything_is_said_of_it(desk: ReconcilerHarness) -> None:
    pods = [desk.add_pod(0), desk.add_pod(1)]
    await desk.reconcile()
    assert desk.asked()[:2] == ["get jobsets", "create configmaps"]
    assert sorted(desk.asked()[2:]) == ["create events", "patch jobsets", "patch pods", "patch pods"]
    mine = verdict_codec.parse(desk.config_map_data()["verdict"])
    assert mine is not None
    assert {verdict_on(desk.api, pod) for pod in pods} == {desk.config_map_data()["verdict"]}


async def test_nothing_is_said_of_a_decision_that_could_not_be_written(desk: ReconcilerHarness) -> None:
    desk.add_pod(0)
    desk.add_pod(1)
    desk.doors.fail = lambda call: ServerError(500) if call.kind == CONFIGMAPS else None
    with pytest.raises(ServerError):
        await desk.reconcile()
    assert desk.asked() == ["get jobsets", "create configmaps"]
    assert desk.patches.depth == 0


async def test_the_news_is_told_on_the_stream_right_after_the_write(desk: ReconcilerHarness) -> None:
    pods = [desk.add_pod(0), desk.add_pod(1)]
    heard = desk.ask(*pods)
    await desk.reconcile()
    assert [(pod, text) for pod, text, _ in heard] == [(pod.uid, desk.config_map_data()["verdict"]) for pod in pods]
    assert {asked for *_, asked in heard} == {("get jobsets", "create configmaps")}, "before all other words"


async def test_a_timeout_is_told_on_the_stream_too(desk: ReconcilerHarness) -> None:
    heard = desk.ask(desk.add_pod(0))
    await desk.reconcile()
    await asyncio.sleep(301)
    await desk.reconcile()
    assert [text.split()[0] for _, text, _ in heard] == ["timeout"]


async def test_a_verdict_that_another_replica_took_is_told_on_this_ones_stream_too(desk: ReconcilerHarness) -> None:
    """The requests were open here before the watch told of its ConfigMap."""
    heard = desk.ask(desk.add_pod(0))
    text = verdict_codec.render(verdict(uid=desk.jobset.uid))
    desk.add_config_map(data={names.KEY_VERDICT: text})
    await desk.reconcile()
    assert [said for _, said, _ in heard] == [text]


async def test_a_gang_of_announced_pods_alone_is_released(desk: ReconcilerHarness) -> None:
    """Their kubelets have not yet said a word of their barriers."""
    pods = [desk.add_pod(index, stage=BarrierStage.WAITING, barrier_since=None) for index in range(2)]
    heard = desk.ask(*pods)
    await desk.reconcile()
    assert names.KEY_VERDICT in desk.config_map_data()
    assert len(heard) == 2


async def test_the_clock_starts_with_the_first_announcement(desk: ReconcilerHarness) -> None:
    desk.ask(desk.add_pod(0, stage=BarrierStage.WAITING, barrier_since=None))
    since = desk.clock()
    await asyncio.sleep(0.25)
    await desk.reconcile()
    clock = verdict_codec.parse_clock(desk.config_map_data()[names.KEY_WAITING_SINCE])
    assert clock is not None
    assert clock.at == pytest.approx(since, abs=0.001)


async def test_a_pod_that_announces_itself_during_the_last_look_before_a_timeout_is_there(
    desk: ReconcilerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.add_pod(0)
    late = desk.add_pod(1, stage=BarrierStage.WAITING, barrier_since=None)

    async def refresh(_: LiveReader, seen: GangSnapshot, **_more: object) -> GangSnapshot:
        desk.ask(late)
        return seen

    monkeypatch.setattr(LiveReader, "refresh", refresh)
    await desk.reconcile()
    await asyncio.sleep(301)
    await desk.reconcile()
    assert desk.config_map_data()[names.KEY_VERDICT].startswith("release ")


async def test_whoever_was_told_on_the_stream_is_patched_only_if_it_still_waits_later(desk: ReconcilerHarness) -> None:
    told, untold = desk.add_pod(0), desk.add_pod(1)
    desk.ask(told)
    again = await desk.reconcile()
    assert (verdict_on(desk.api, told), verdict_on(desk.api, untold)) == ("", desk.config_map_data()["verdict"])
    assert again is not None
    await asyncio.sleep(DELIVERY_GRACE - 1)
    await desk.reconcile()
    assert verdict_on(desk.api, told) == ""
    await asyncio.sleep(1)
    await desk.reconcile()
    assert verdict_on(desk.api, told) == desk.config_map_data()["verdict"]


async def test_a_pod_that_somebody_names_at_a_gang_of_his_own_gets_its_patch(desk: ReconcilerHarness) -> None:
    """What he was told there says nothing of the pod."""
    victim = desk.add_pod(0)
    desk.add_pod(1)
    own = gangs.jobset(namespace="theirs", name="own", token="theirs")
    desk.index.on_jobset(ObjectChange(("theirs", "own"), None, own))
    decided = gangs.config_map(namespace="theirs", name="own-group-scheduling", verdict=gangs.verdict())
    desk.index.on_config_map(ObjectChange(("theirs", decided.name), None, decided))
    client = OrderedPeer(desk, victim.uid, [], gone=False)
    request = desk.book.admit_request(GangKey("theirs", "own"), "theirs", Generation(own.uid, 0, 0), victim.uid, client)
    assert request.answered
    desk.book.acknowledge_request(request)
    await desk.reconcile()
    assert verdict_on(desk.api, victim) == desk.config_map_data()["verdict"]


@pytest.mark.parametrize("what", ["deleted", "suspended", "finished", "its pods went"])
async def test_a_gang_that_waits_no_more_gives_its_places_on_the_stream_back(
    desk: ReconcilerHarness, what: str
) -> None:
    pods = [desk.add_pod(0, stage=BarrierStage.WAITING), desk.add_pod(1, stage=BarrierStage.WAITING)]
    heard = desk.ask(*pods)
    match what:
        case "deleted":
            desk.index.on_jobset(ObjectChange(("default", "train"), desk.jobset, None))
        case "its pods went":
            for pod in pods:
                desk.index.on_pod(ObjectChange(("default", pod.name), pod, None))
        case _:
            desk.set_jobset(msgspec.structs.replace(desk.jobset, **{what: True}))
    await desk.reconcile()
    assert [(pod, said) for pod, said, _ in heard] == [(pod.uid, "dropped") for pod in pods]


@pytest.mark.parametrize("what", ["is suspended", "is restarted", "loses a pod", "is gone"])
async def test_a_gang_that_changes_while_the_api_is_asked_about_it_is_not_decided_on_what_it_was(
    desk: ReconcilerHarness, what: str
) -> None:
    """Its answer may take a client's whole patience."""
    pods = [desk.add_pod(0), desk.add_pod(1)]

    def meanwhile(call: Call) -> None:
        if (call.verb, call.kind) != ("get", JOBSETS):
            return
        match what:
            case "is suspended":
                desk.set_jobset(msgspec.structs.replace(desk.jobset, suspended=True))
            case "is restarted":
                desk.set_jobset(msgspec.structs.replace(desk.jobset, attempt=1))
            case "loses a pod":
                desk.index.on_pod(ObjectChange(("default", pods[0].name), pods[0], None))
            case _:
                desk.index.on_jobset(ObjectChange(("default", "train"), desk.jobset, None))

    desk.doors.fail = meanwhile
    with suppress(Requeue):
        await desk.reconcile()
    kept = desk.api.get(CONFIGMAPS, NAME)
    assert kept is None or names.KEY_VERDICT not in kept["data"]


async def test_a_clock_that_somebody_sets_back_makes_nobody_wait_longer_for_its_patch(desk: ReconcilerHarness) -> None:
    told, untold = desk.add_pod(0), desk.add_pod(1)
    desk.ask(told)
    await desk.reconcile()
    first = dict(notes(desk.api, untold))
    desk.clock.ahead = -3600.0
    await asyncio.sleep(DELIVERY_GRACE)
    await desk.reconcile()
    assert verdict_on(desk.api, told) == desk.config_map_data()["verdict"]
    assert notes(desk.api, untold) != first, "a straggler"


async def test_whoever_was_told_and_turns_out_not_to_have_heard_is_patched_at_the_next_pass(
    desk: ReconcilerHarness,
) -> None:
    deaf = desk.add_pod(0)
    desk.add_pod(1)
    desk.ask(deaf)
    await desk.reconcile()
    await asyncio.sleep(CONFIG_MAP_GRACE)
    await desk.reconcile()
    assert verdict_on(desk.api, deaf) == ""
    desk.book.deliveries.discard_unconfirmed(TRAIN, deaf.uid)
    await desk.reconcile()
    assert verdict_on(desk.api, deaf) == desk.config_map_data()["verdict"]


@pytest.mark.parametrize("error", [ServerError(500), Unreachable("silence"), InvalidResponse("rubbish")])
async def test_a_gang_whose_condition_cannot_be_written_fails_in_time(
    desk: ReconcilerHarness, error: KubeError
) -> None:
    desk.doors.fail = lambda call: error if call.verb == "patch" and call.kind == JOBSETS else None
    desk.add_pod(0)
    desk.add_pod(1, stage=BarrierStage.WAITING)
    since = desk.clock()
    again = await desk.reconcile()
    assert again == pytest.approx(300)
    await asyncio.sleep(300)
    await desk.reconcile()
    assert desk.config_map_data()[names.KEY_VERDICT].startswith("timeout ")
    assert desk.clock() - since < 302


async def test_whoever_was_lost_while_it_was_told_is_patched_like_those_without_a_stream(
    desk: ReconcilerHarness,
) -> None:
    lost = desk.add_pod(0)
    desk.add_pod(1)
    desk.ask(lost, gone=True)
    await desk.reconcile()
    await asyncio.sleep(CONFIG_MAP_GRACE)
    await desk.reconcile()
    assert verdict_on(desk.api, lost) == desk.config_map_data()["verdict"]


async def test_a_suspended_gang_whose_configmap_is_lost_gets_its_last_verdict_back(desk: ReconcilerHarness) -> None:
    """A pod of the generation that it was for may still read it."""
    desk.add_pod(0)
    desk.add_pod(1)
    await desk.reconcile()
    before = desk.config_map_data()["verdict"]
    desk.set_jobset(msgspec.structs.replace(desk.jobset, suspended=True))
    desk.api.remove(CONFIGMAPS, NAME)
    desk.index.set_config_map(TRAIN, None)
    await desk.reconcile()
    assert desk.config_map_data()["verdict"] == before


async def test_a_gang_that_waits_has_a_gate_a_clock_and_a_time_to_look_again(desk: ReconcilerHarness) -> None:
    desk.add_pod(0)
    desk.add_pod(1, stage=BarrierStage.WAITING)
    assert await desk.reconcile() == pytest.approx(300)
    assert set(desk.config_map_data()) == {names.KEY_WAITING_SINCE}


async def test_a_gang_whose_pods_are_refused_says_so_while_it_waits(desk: ReconcilerHarness) -> None:
    """Nothing tells a watch of pods that never come to be: it looks again by itself."""
    desk.add_pod(0)
    tell(desk.api, "Job", "train-workers-0", "FailedCreate", "exceeded quota: gpus")
    again = await desk.reconcile()
    assert again == pytest.approx(quota_denials.FIRST_POLL_AFTER)
    await asyncio.sleep(quota_denials.FIRST_POLL_AFTER)
    assert await desk.reconcile() == 0
    await asyncio.sleep(PROGRESS_INTERVAL)
    await desk.reconcile()
    (told,) = desk.api.get(JOBSETS, "train")["status"]["conditions"]  # type: ignore[index]
    assert "missing: 1 pod: QuotaDenied: exceeded quota: gpus (workers-0/1); " in told["message"]
    assert "next: kubectl describe resourcequota -n default" in told["message"]


async def test_only_pods_whom_the_verdict_binds_are_told(desk: ReconcilerHarness) -> None:
    """Another replica has decided on an attempt that our view of the JobSet does not show yet."""
    of_ours = desk.add_pod(0)
    desk.api.change(JOBSETS, "train", lambda body: body.update(status={"restarts": 1}))
    seen = desk.index.snapshot(TRAIN)
    assert seen is not None
    await desk.gates.ensure_config_map(seen, verdict(uid=desk.jobset.uid, attempt=1), None)
    await desk.reconcile()
    await asyncio.sleep(CONFIG_MAP_GRACE)
    await desk.reconcile()
    assert verdict_on(desk.api, of_ours) == ""
    assert verdict_codec.parse(desk.config_map_data()["verdict"]) == verdict(uid=desk.jobset.uid, attempt=1)


async def test_a_verdict_that_stands_is_put_back_when_its_configmap_is_lost(desk: ReconcilerHarness) -> None:
    desk.add_pod(0)
    desk.add_pod(1)
    await desk.reconcile()
    told = desk.api.get(JOBSETS, "train")
    assert told is not None
    (condition,) = told["status"]["conditions"]
    since = ConditionSeen(
        status=condition["status"], reason=condition["reason"], message=condition["message"], since=""
    )
    desk.set_jobset(msgspec.structs.replace(desk.jobset, condition=since))
    before = verdict_codec.parse(desk.config_map_data()["verdict"])
    desk.api.remove(CONFIGMAPS, NAME)
    desk.index.set_config_map(TRAIN, None)
    await desk.reconcile()
    assert verdict_codec.parse(desk.config_map_data()["verdict"]) == before


@pytest.mark.parametrize("uid", ["jobsets-0", None])
async def test_a_condition_that_tells_of_another_jobset_or_of_none_is_no_verdict_on_this_one(
    desk: ReconcilerHarness, uid: str | None
) -> None:
    """It was written for its predecessor of the same name, or by a version that did not say for which it was."""
    told = messages.decided(verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, uid=uid or "x"))
    message = told.message if uid else told.message.replace("uid x, ", "")
    condition = {"type": names.CONDITION, "status": told.status, "reason": told.reason, "message": message}
    desk.api.change(JOBSETS, "train", lambda body: body.update(status={"conditions": [condition]}))
    desk.add_pod(0)
    desk.add_pod(1)
    await desk.reconcile()
    kept = verdict_codec.parse(desk.config_map_data()["verdict"])
    assert kept is not None
    assert (kept.kind, kept.generation.uid) == (VerdictKind.RELEASE, desk.jobset.uid)


@pytest.mark.parametrize("how", ["deleted", "emptied"])
async def test_a_verdict_of_which_only_the_api_knows_is_not_taken_anew(desk: ReconcilerHarness, how: str) -> None:
    """It was another replica's, its ConfigMap is lost, and the watch has not yet shown the condition that tells of it.

    All pods have started by now: in this view nothing speaks against a release.
    """
    taken = verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, uid=desk.jobset.uid)
    told = messages.decided(taken)
    condition = {"type": names.CONDITION, "status": told.status, "reason": told.reason, "message": told.message}
    desk.api.change(JOBSETS, "train", lambda body: body.update(status={"conditions": [condition]}))
    if how == "emptied":
        desk.add_config_map(data={"verdict": "?"})
    desk.add_pod(0)
    desk.add_pod(1)
    await desk.reconcile()
    kept = verdict_codec.parse(desk.config_map_data()["verdict"])
    assert kept is not None
    assert (kept.kind, kept.generation) == (VerdictKind.TIMEOUT, taken.generation)


# --- A ConfigMap that somebody has edited well -----------------------------------------------------------------------


@pytest.mark.parametrize("restarted", [False, True], ids=["in sight", "while no controller ran"])
async def test_a_timeout_that_is_edited_into_a_release_is_put_back_and_nobody_is_told_the_release(
    desk: ReconcilerHarness, restarted: bool
) -> None:
    pods = [desk.add_pod(0)]
    await desk.reconcile()
    await asyncio.sleep(301)
    await desk.reconcile()
    before = desk.config_map_data()[names.KEY_VERDICT]
    assert before.startswith("timeout ")
    edited = desk.edit(before.replace("timeout", "release", 1))
    if restarted:
        desk.set_jobset(desk.jobset_in_api())
        desk.index.remember_verdict(TRAIN, None)
    desk.index.set_config_map(TRAIN, edited)
    heard = desk.ask(*pods)
    await desk.reconcile()
    assert desk.config_map_data()[names.KEY_VERDICT] == before
    assert {text for _, text, _ in heard} <= {before}
    assert verdict_on(desk.api, pods[0]) in ("", before)


@pytest.mark.parametrize("where", ["7 0", "0 7"], ids=["attempt", "epoch"])
async def test_a_verdict_of_a_generation_that_does_not_exist_is_taken_out_and_the_gang_waits_on(
    desk: ReconcilerHarness, where: str
) -> None:
    first = desk.add_pod(0)
    await desk.reconcile()
    clock = desk.config_map_data()
    desk.index.set_config_map(TRAIN, desk.edit(f"release {desk.jobset.uid} {where} AllPodsStarted\n"))
    heard = desk.ask(first)
    await desk.reconcile()
    assert (desk.config_map_data(), heard, verdict_on(desk.api, first)) == (clock, [], "")
    desk.add_pod(1)
    await desk.reconcile()
    assert desk.config_map_data()[names.KEY_VERDICT].startswith(f"release {desk.jobset.uid} 0 0 ")


async def test_a_clock_of_an_attempt_that_does_not_exist_does_not_keep_the_gang_from_failing(
    desk: ReconcilerHarness,
) -> None:
    desk.add_pod(0)
    await desk.reconcile()
    date = desk.config_map_data()[names.KEY_WAITING_SINCE].split()[-1]
    desk.index.set_config_map(TRAIN, desk.edit(None, clock=f"{desk.jobset.uid} 7 0 {date}"))
    await desk.reconcile()
    await asyncio.sleep(303)
    await desk.reconcile()
    assert desk.config_map_data()[names.KEY_VERDICT].startswith("timeout ")


async def test_a_verdict_that_the_view_does_not_bear_out_is_not_judged_without_asking_the_api(
    desk: ReconcilerHarness,
) -> None:
    desk.add_pod(0)
    await desk.reconcile()
    text = f"release {desk.jobset.uid} 7 0 AllPodsStarted\n"
    desk.index.set_config_map(TRAIN, desk.edit(text))
    desk.doors.fail = lambda call: ServerError(500) if call.verb == "get" else None
    with pytest.raises(ServerError):
        await desk.reconcile()
    assert desk.config_map_data()[names.KEY_VERDICT] == text


async def test_without_asking_the_api_nothing_is_decided_for_a_gang_whose_configmap_is_lost(
    desk: ReconcilerHarness,
) -> None:
    desk.add_pod(0)
    desk.add_pod(1)
    desk.doors.fail = lambda call: ServerError(500) if call.verb == "get" else None
    with pytest.raises(ServerError):
        await desk.reconcile()
    assert desk.asked() == ["get jobsets"]


@pytest.mark.parametrize("again", [False, True])
async def test_nothing_is_decided_for_a_jobset_that_is_gone_or_another_by_now(
    desk: ReconcilerHarness, again: bool
) -> None:
    desk.add_pod(0)
    desk.add_pod(1)
    desk.api.remove(JOBSETS, "train")
    if again:
        store_jobset(desk.api)
    with pytest.raises(Requeue):
        await desk.reconcile()
    assert desk.api.get(CONFIGMAPS, NAME) is None


async def test_a_gang_whose_configmap_is_as_it_should_be_is_decided_without_asking(desk: ReconcilerHarness) -> None:
    desk.add_pod(0)
    await desk.reconcile()
    desk.add_pod(1)
    before = len(desk.doors.calls)
    await desk.reconcile()
    assert desk.asked()[before] == "update configmaps"


async def test_pods_that_do_not_wait_in_their_barrier_are_not_told(desk: ReconcilerHarness) -> None:
    waits, leaves = desk.add_pod(0), desk.add_pod(1)
    going = msgspec.structs.replace(leaves, deleting=True)
    desk.set_jobset(msgspec.structs.replace(desk.jobset, bypass=True))
    desk.index.on_pod(ObjectChange(("default", leaves.name), leaves, going))
    await desk.reconcile()
    assert verdict_on(desk.api, waits)
    assert not verdict_on(desk.api, leaves)


@pytest.mark.parametrize("state", [{"finished": True}, {"deleting": True}, {"managed_elsewhere": True}])
async def test_a_gang_that_is_nobodys_business_is_left_in_peace(
    desk: ReconcilerHarness, state: dict[str, bool]
) -> None:
    desk.add_pod(0)
    desk.add_pod(1)
    desk.set_jobset(msgspec.structs.replace(desk.jobset, **state))
    assert await desk.reconcile() is None
    assert desk.asked() == []


async def test_a_gang_that_is_gone_is_left_in_peace(desk: ReconcilerHarness) -> None:
    desk.index.on_jobset(ObjectChange(("default", "train"), desk.jobset, None))
    assert await desk.reconcile() is None
    assert desk.asked() == []


async def test_templates_without_a_barrier_get_a_condition_and_no_gate(desk: ReconcilerHarness) -> None:
    desk.set_jobset(msgspec.structs.replace(desk.jobset, replicated_jobs=(replicated_job(has_barrier=False),)))
    assert await desk.reconcile() is None
    assert desk.asked() == ["create events", "patch jobsets"]


async def test_a_strangers_configmap_is_reported_and_looked_at_again(desk: ReconcilerHarness) -> None:
    theirs = desk.api.create(CONFIGMAPS, {"metadata": {"name": NAME}, "data": {"theirs": "x"}})
    desk.add_pod(0)
    desk.add_pod(1)
    assert await desk.reconcile() == 0.0
    again = await desk.reconcile()
    assert again is not None
    assert again > 1
    jobset = desk.api.get(JOBSETS, "train")
    assert jobset is not None
    assert jobset["status"]["conditions"][0]["reason"] == "ConfigMapConflict"
    assert desk.api.get(CONFIGMAPS, NAME) == theirs
    desk.api.remove(CONFIGMAPS, NAME)
    await desk.reconcile()
    assert names.KEY_VERDICT in desk.config_map_data()


async def test_before_a_timeout_the_api_is_asked_once_more(desk: ReconcilerHarness) -> None:
    desk.add_pod(0)
    await desk.reconcile()
    await asyncio.sleep(301)
    before = len(desk.doors.calls)
    await desk.reconcile()
    asked = desk.asked()[before:]
    assert asked.index("list pods") < asked.index("update configmaps")
    assert asked.index("list jobs") < asked.index("update configmaps")


async def test_a_timeout_that_the_api_does_not_confirm_is_not_taken(desk: ReconcilerHarness) -> None:
    desk.add_pod(0)
    await desk.reconcile()
    await asyncio.sleep(301)
    desk.doors.fail = lambda call: ServerError(500) if call.kind == PODS else None
    with pytest.raises(ServerError):
        await desk.reconcile()
    assert set(desk.config_map_data()) == {names.KEY_WAITING_SINCE}


async def test_in_a_namespace_that_goes_nothing_is_tried_again(desk: ReconcilerHarness) -> None:
    cause = {"reason": "NamespaceTerminating", "message": "namespace default is being terminated"}
    desk.doors.fail = lambda call: Forbidden(403, details={"causes": [cause]}) if call.verb == "create" else None
    desk.add_pod(0)
    assert await desk.reconcile() is None


async def test_any_other_refusal_is_an_error(desk: ReconcilerHarness) -> None:
    desk.doors.fail = lambda call: Forbidden(403, "Forbidden", "quota") if call.verb == "create" else None
    desk.add_pod(0)
    with pytest.raises(Forbidden):
        await desk.reconcile()


async def test_a_loser_of_a_race_says_nothing_and_looks_again(desk: ReconcilerHarness) -> None:
    """Another replica has taken a verdict that this one has not seen."""
    desk.add_pod(0)
    await desk.reconcile()
    desk.api.change(CONFIGMAPS, NAME, lambda body: body["data"].update(verdict="timeout x 0 0 TimedOut"))
    desk.add_pod(1)
    before = len(desk.doors.calls)
    with pytest.raises(Requeue):
        await desk.reconcile()
    assert desk.asked()[before:] == ["update configmaps", "get configmaps"]
